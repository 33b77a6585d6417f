import { useState } from 'react';
import { call, exchange, type Item } from '../../api/client.ts';
import { PrincipalPicker } from '../../principals/picker.tsx';
import { useSession } from '../../session.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog, Form } from '../../ui/dialog.tsx';
import { CodeField, Field, fieldError } from '../../ui/field.tsx';
import { refresh, useAction, useLoad } from '../../ui/query.ts';
import { Shown } from '../../ui/shown.tsx';
import { toast } from '../../ui/toast.tsx';
import { type Expiry, ExpiryField, noExpiry, ttlOf } from './expiry.tsx';

type Entry = Item<'GET /api/v1/kv'>;

export function NewEntry({ user, onClose }: { user: string; onClose: () => void }) {
  const { isDeveloper } = useSession();
  const [key, setKey] = useState('');
  const [value, setValue] = useState('');
  const [owner, setOwner] = useState(user);
  const [expiry, setExpiry] = useState(noExpiry);
  const create = useAction(
    async () => {
      await call('POST /api/v1/kv', {
        body: { key, value, ...ttlOf(expiry, undefined), ...(isDeveloper ? { user: owner } : {}) },
      });
      onClose();
    },
    { say: 'The entry was created.', refresh: ['GET /api/v1/kv'] },
  );
  return (
    <Dialog title="New entry" onClose={onClose}>
      <Form
        submit="Create"
        busy={create.busy}
        error={create.error}
        shownFields={['key', 'user', 'ttl_seconds']}
        onSubmit={() => create.run()}
        onCancel={onClose}
      >
        {isDeveloper ? (
          <Field label="User" error={fieldError(create.error, 'user')}>
            {(id) => (
              <PrincipalPicker
                label="User"
                id={id}
                kinds={['user']}
                any="Choose a user"
                value={owner}
                onChange={setOwner}
              />
            )}
          </Field>
        ) : null}
        <Field label="Key" error={fieldError(create.error, 'key')}>
          {(id, described) => (
            <input
              id={id}
              {...described}
              required
              spellCheck={false}
              placeholder="settings/theme"
              value={key}
              onChange={(event) => setKey(event.target.value)}
            />
          )}
        </Field>
        <ValueField value={value} onChange={setValue} />
        <ExpiryField value={expiry} error={fieldError(create.error, 'ttl_seconds')} onChange={setExpiry} />
      </Form>
    </Dialog>
  );
}

function ValueField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const problem = jsonProblem(value);
  return (
    <>
      <CodeField
        label="Value"
        hint={problem === undefined ? 'JSON.' : problem === '' ? 'Any text.' : `Text (${problem}).`}
        rows={10}
        value={value}
        onChange={onChange}
      />
      {problem === undefined ? (
        <Button kind="quiet" onClick={() => onChange(JSON.stringify(JSON.parse(value), null, 2))}>
          Format the JSON
        </Button>
      ) : null}
    </>
  );
}

/** Why text that looks like JSON is invalid. Empty for other text, undefined for valid JSON. */
function jsonProblem(text: string): string | undefined {
  if (!/^\s*[[{"\d-]/.test(text)) return '';
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return `not JSON: ${error instanceof Error ? error.message : ''}`;
  }
}

export function EditEntry({ entry, onClose }: { entry: Entry; onClose: () => void }) {
  const { isDeveloper } = useSession();
  const path = { key: entry.key };
  const whose = isDeveloper ? { user: entry.user } : {};
  // The entry is read again each time it is opened, because an edit needs its current version.
  const [openings] = useState(() => Math.random());
  const opened = useLoad(['kv entry', entry.user, entry.key, openings], () =>
    exchange('GET /api/v1/kv/{key}', { path, query: whose }),
  );
  return (
    <Dialog title={entry.key} onClose={onClose} wide>
      <Shown loaded={opened}>
        {({ data, etag }) => (
          <EditForm
            path={path}
            whose={whose}
            value={pretty(data.value)}
            expiresAt={data.expires_at}
            etag={etag}
            onClose={onClose}
          />
        )}
      </Shown>
    </Dialog>
  );
}

/** JSON is shown formatted. Saving it unchanged keeps the stored text. */
function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

type Conflict = { value: string | undefined; etag: string | undefined };

/** Saves only over the version that was opened. A newer value is shown beside the edited one. */
function EditForm({
  path,
  whose,
  value: openedValue,
  expiresAt,
  etag: openedEtag,
  onClose,
}: {
  path: { key: string };
  whose: { user?: string };
  value: string;
  expiresAt: string | undefined;
  etag: string | undefined;
  onClose: () => void;
}) {
  const [value, setValue] = useState(openedValue);
  const [etag, setEtag] = useState(openedEtag);
  const [expiry, setExpiry] = useState<Expiry>({ ...noExpiry, kind: expiresAt === undefined ? 'never' : 'keep' });
  const [conflict, setConflict] = useState<Conflict>();
  const save = useAction(async (over: string | undefined) => {
    const condition: Record<string, string> = over === undefined ? { 'if-none-match': '*' } : { 'if-match': over };
    try {
      const body = { value, ...ttlOf(expiry, expiresAt), ...whose };
      await call('PUT /api/v1/kv/{key}', { path, body, headers: condition });
    } catch (error) {
      if (!isConflict(error)) throw error;
      setConflict(await readPresent(path, whose));
      return;
    }
    refresh('GET /api/v1/kv');
    toast('Saved.');
    onClose();
  });
  return (
    <Form
      submit={conflict ? 'Overwrite with mine' : 'Save'}
      busy={save.busy}
      error={save.error}
      danger={conflict !== undefined}
      shownFields={['ttl_seconds']}
      onSubmit={() => save.run(conflict ? conflict.etag : etag)}
      onCancel={onClose}
    >
      {conflict ? (
        <div className="notice warning" role="alert">
          <p>
            <strong>It was changed while you were editing.</strong> Both values are below: use theirs, or overwrite it
            with yours.
          </p>
          <div className="panes">
            <div>
              <h3>Theirs</h3>
              <pre className="code">{conflict.value ?? 'It was deleted.'}</pre>
            </div>
            <div>
              <h3>Yours</h3>
              <pre className="code">{value}</pre>
            </div>
          </div>
          {conflict.value === undefined ? null : (
            <Button
              onClick={() => {
                setValue(conflict.value ?? '');
                setEtag(conflict.etag);
                setConflict(undefined);
              }}
            >
              Use theirs
            </Button>
          )}
        </div>
      ) : null}
      <ValueField value={value} onChange={setValue} />
      <ExpiryField
        value={expiry}
        expiresAt={expiresAt}
        error={fieldError(save.error, 'ttl_seconds')}
        onChange={setExpiry}
      />
    </Form>
  );
}

function isConflict(error: unknown): boolean {
  return error instanceof Error && 'status' in error && error.status === 412;
}

async function readPresent(path: { key: string }, whose: { user?: string }): Promise<Conflict> {
  try {
    const { data, etag } = await exchange('GET /api/v1/kv/{key}', { path, query: whose });
    return { value: data.value, etag };
  } catch {
    return { value: undefined, etag: undefined };
  }
}
