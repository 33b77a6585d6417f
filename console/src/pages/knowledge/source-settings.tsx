import { useState } from 'react';
import { useLocation } from 'wouter';
import { call, type Item } from '../../api/client.ts';
import type { KnowledgeSource } from '../../api/generated.ts';
import { useSession } from '../../session.tsx';
import { Button } from '../../ui/button.tsx';
import { Form } from '../../ui/dialog.tsx';
import { CodeField, Field } from '../../ui/field.tsx';
import { parseObject } from '../../ui/json.ts';
import { ErrorNotice } from '../../ui/notice.tsx';
import { optimistically, refresh, useAction, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { Skeleton } from '../../ui/shown.tsx';
import { useUnsaved } from '../../ui/unsaved.ts';
import { EraseButton } from '../erasures/erase-button.tsx';
import { addressOf, CredentialsSetting } from './credentials.tsx';
import { VersionsSetting } from './history.tsx';
import { InboundUrl, PullUrl } from './inbound-url.tsx';
import { otherMembers, readPayload, SchemaFields, typedOf } from './schema-form.tsx';
import { sourceName } from './source-name.ts';

/** Kinds without a pull. */
export const filledFromOutside = ['knowledge/documents', 'webhook/inbound', 'thread/messages'];

const patch = 'PATCH /api/v1/knowledge_sources/{source}';

/** Edits a source's name, metadata, payload and state, and deletes it. */
export function Settings({
  source,
  onChange,
}: {
  source: KnowledgeSource;
  onChange: (source: KnowledgeSource) => void;
}) {
  const [, navigate] = useLocation();
  const { isDeveloper } = useSession();
  const path = { source: source.id };
  const pause = useAction(() => {
    const state = source.state === 'active' ? ('paused' as const) : ('active' as const);
    return optimistically(source, { ...source, state }, onChange, () => call(patch, { path, body: { state } }));
  });
  return (
    <div className="stack">
      <Name source={source} onChange={onChange} />
      <Reading source={source} onChange={onChange} />
      <JsonSetting
        name="metadata"
        label="Metadata"
        hint="Your own data about the source, as JSON."
        source={source}
        onChange={onChange}
      />
      <VersionsSetting source={source} onChange={onChange} />
      {source.type === 'webhook/inbound' ? <InboundUrl source={source.id} /> : null}
      {filledFromOutside.includes(source.type) ? null : <PullUrl source={source.id} />}
      <section className="card">
        <h2>{source.state === 'active' ? 'Pause' : 'Resume'}</h2>
        <p className="hint">A paused source starts no ingestions. Its documents can still be searched.</p>
        <ErrorNotice error={pause.error} />
        <div>
          <Button busy={pause.busy} onClick={() => pause.run()}>
            {source.state === 'active' ? 'Pause the source' : 'Activate the source'}
          </Button>
        </div>
      </section>
      <section className="card">
        <h2>Delete</h2>
        <p className="hint">This also deletes its documents and the history of its ingestions.</p>
        <div>
          <DeleteButton
            title={`Delete ${sourceName(source)}?`}
            action="Delete it"
            label="Delete the source"
            perform={async () => {
              await call('DELETE /api/v1/knowledge_sources/{source}', { path });
              refresh('GET /api/v1/knowledge_sources');
              navigate('/knowledge');
            }}
          >
            This also deletes all of its documents. This cannot be undone.
          </DeleteButton>
        </div>
      </section>
      {isDeveloper ? (
        <section className="card">
          <h2>Erase</h2>
          <p className="hint">
            This deletes the same and every trace of it in indexes, models and stored answers, and ends with a signed
            certificate.
          </p>
          <div>
            <EraseButton kind="source" id={source.id} name={sourceName(source)} />
          </div>
        </section>
      ) : null}
    </div>
  );
}

function Name({ source, onChange }: { source: KnowledgeSource; onChange: (source: KnowledgeSource) => void }) {
  const saved = typeof source.metadata?.name === 'string' ? source.metadata.name : '';
  const [name, setName] = useState(saved);
  useUnsaved(name !== saved);
  const save = useAction(
    async () => {
      const metadata = { ...source.metadata, name };
      onChange(await call(patch, { path: { source: source.id }, body: { metadata } }));
    },
    { say: 'Renamed.', refresh: ['GET /api/v1/knowledge_sources'] },
  );
  return (
    <section className="card">
      <Form quiet submit="Rename" busy={save.busy} error={save.error} onSubmit={() => save.run()}>
        <Field label="Name" hint="Shown in the console. Stored in the metadata.">
          {(id, described) => (
            <input id={id} {...described} required value={name} onChange={(event) => setName(event.target.value)} />
          )}
        </Field>
      </Form>
    </section>
  );
}

/** What the source reads: a form by the schema of its kind, or JSON for a kind without one. */
function Reading({ source, onChange }: { source: KnowledgeSource; onChange: (source: KnowledgeSource) => void }) {
  const kinds = useApi('GET /api/v1/knowledge_sources/kinds');
  const kind = kinds.data?.data.find(({ type }) => type === source.type);
  const json = (
    <JsonSetting
      name="payload"
      label="Payload"
      hint="What the source reads, and how, as JSON."
      source={source}
      onChange={onChange}
    />
  );
  if (kinds.loading) return <Skeleton rows={4} />;
  if (!kind) return json;
  return (
    <>
      <PayloadSetting key={JSON.stringify(source.payload)} kind={kind} source={source} onChange={onChange} />
      {kind.credentials_schema ? (
        <CredentialsSetting schema={kind.credentials_schema} source={source} onChange={onChange} />
      ) : null}
      <details className="as-json">
        <summary>The payload as JSON</summary>
        {json}
      </details>
    </>
  );
}

function PayloadSetting({
  kind: { label, payload_schema: schema },
  source,
  onChange,
}: {
  kind: Item<'GET /api/v1/knowledge_sources/kinds'>;
  source: KnowledgeSource;
  onChange: (source: KnowledgeSource) => void;
}) {
  const stored = source.payload ?? {};
  const [typed, setTyped] = useState(() => typedOf(schema, stored));
  const payload = { ...otherMembers(schema, stored), ...readPayload(schema, typed) };
  const isChanged =
    JSON.stringify(readPayload(schema, typedOf(schema, stored))) !== JSON.stringify(readPayload(schema, typed));
  useUnsaved(isChanged);
  const save = useAction(async () => onChange(await call(patch, { path: { source: source.id }, body: { payload } })), {
    say: 'Saved.',
    refresh: ['GET /api/v1/knowledge_sources'],
  });
  return (
    <section className="card">
      <h2>What it reads: {label}</h2>
      <Form
        quiet
        submit="Save what it reads"
        busy={save.busy}
        error={save.error}
        shownFields={Object.keys(typed).map((member) => `payload.${member}`)}
        onSubmit={() => save.run()}
      >
        <div className="row">
          <SchemaFields schema={schema} values={typed} error={save.error} onChange={setTyped} />
        </div>
        {source.has_credentials && addressOf(payload) !== addressOf(stored) ? (
          <p className="notice warning">
            The stored credentials belong to another address: saving clears them. Enter them again afterwards.
          </p>
        ) : null}
      </Form>
    </section>
  );
}

function JsonSetting({
  name,
  label,
  hint,
  source,
  onChange,
}: {
  name: 'payload' | 'metadata';
  label: string;
  hint: string;
  source: KnowledgeSource;
  onChange: (source: KnowledgeSource) => void;
}) {
  const textOf = (one: KnowledgeSource) => JSON.stringify(one[name] ?? {}, null, 2);
  const stored = textOf(source);
  const [seen, setSeen] = useState(stored);
  const [text, setText] = useState(stored);
  if (stored !== seen) {
    setSeen(stored);
    // A change made elsewhere updates only text that was not edited here.
    if (text === seen) setText(stored);
  }
  useUnsaved(text !== stored);
  const save = useAction(
    async () => {
      const body = { [name]: parseObject(text) };
      const saved = await call(patch, { path: { source: source.id }, body });
      setText(textOf(saved));
      onChange(saved);
    },
    { say: 'Saved.' },
  );
  return (
    <section className="card">
      <Form quiet submit={`Save the ${name}`} busy={save.busy} error={save.error} onSubmit={() => save.run()}>
        <CodeField label={label} hint={hint} rows={6} value={text} onChange={setText} />
      </Form>
    </section>
  );
}
