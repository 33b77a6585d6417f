import { useState } from 'react';
import { type ApiError, call } from '../../api/client.ts';
import type { KnowledgeSource } from '../../api/generated.ts';
import { Form } from '../../ui/dialog.tsx';
import { useAction } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { useUnsaved } from '../../ui/unsaved.ts';
import './knowledge.css';
import { emptyPayload, readPayload, SchemaFields, type Typed } from './schema-form.tsx';

type Schema = Record<string, unknown>;
const patch = 'PATCH /api/v1/knowledge_sources/{source}';

/** Fields for what pulls sign in with. They are sent, and never shown again. */
export function CredentialFields({
  schema,
  values,
  error,
  onChange,
}: {
  schema: Schema;
  values: Typed;
  error: ApiError | undefined;
  onChange: (values: Typed) => void;
}) {
  return (
    <fieldset className="credentials">
      <legend>Credentials</legend>
      <p className="hint">
        Only for what is not public. They are encrypted, never shown again, and sent only to this address.
      </p>
      <SchemaFields schema={schema} of="credentials" secret values={values} error={error} onChange={onChange} />
    </fieldset>
  );
}

/** The member of a body with the credentials that were typed, if there are any. */
export function credentialsMember(schema: Schema | undefined, values: Typed) {
  const credentials = readPayload(schema ?? {}, values) as Record<string, string>;
  return Object.keys(credentials).length === 0 ? {} : { credentials };
}

/** Sets, replaces and removes the credentials of a source. */
export function CredentialsSetting({
  schema,
  source,
  onChange,
}: {
  schema: Schema;
  source: KnowledgeSource;
  onChange: (source: KnowledgeSource) => void;
}) {
  const path = { source: source.id };
  const [values, setValues] = useState(emptyPayload);
  const body = credentialsMember(schema, values);
  const isTyped = 'credentials' in body;
  useUnsaved(isTyped);
  const save = useAction(
    async () => {
      onChange(await call(patch, { path, body }));
      setValues(emptyPayload);
    },
    { say: 'The credentials are stored.' },
  );
  return (
    <section className="card">
      <div className="toolbar">
        <h2>Sign-in</h2>
        {source.has_credentials ? (
          <DeleteButton
            title="Remove the credentials?"
            action="Remove them"
            label="Remove"
            perform={async () => onChange(await call(patch, { path, body: { credentials: null } }))}
          >
            Pulls then read without signing in. The server cannot show them again.
          </DeleteButton>
        ) : null}
      </div>
      <p>
        {source.has_credentials
          ? 'Pulls sign in with stored credentials. What you enter here replaces all of them.'
          : 'Pulls do not sign in.'}
      </p>
      <Form
        quiet
        submit={source.has_credentials ? 'Replace the credentials' : 'Store the credentials'}
        ready={isTyped}
        busy={save.busy}
        error={save.error}
        shownFields={Object.keys(values).map((member) => `credentials.${member}`)}
        onSubmit={() => save.run()}
      >
        <CredentialFields schema={schema} values={values} error={save.error} onChange={setValues} />
      </Form>
    </section>
  );
}

/** What credentials belong to, as far as the form can tell: another address clears them. */
export function addressOf({ url, bucket, region }: Record<string, unknown>): string {
  if (typeof url === 'string') return URL.canParse(url) ? new URL(url).origin : url;
  return [bucket, region].join(' ');
}
