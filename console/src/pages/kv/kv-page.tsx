import { useState } from 'react';
import { call, exchange, type Item } from '../../api/client.ts';
import { useSession } from '../../session.tsx';
import { Button, CodeField, Empty, Field, fieldError, PageHead, Pager, Shown, Table, Time } from '../../ui/basics.tsx';
import { Confirm, Dialog, Form } from '../../ui/dialog.tsx';
import { useDelayed } from '../../ui/use-delayed.ts';
import { useAction, useLoad } from '../../ui/use-load.ts';

type Entry = Item<'GET /api/v1/kv'>;
type Asking = { kind: 'new' } | { kind: 'edit' | 'delete'; entry: Entry };

/** Entries of all users for developers, and their own for end users. */
export function KvPage() {
  const { isDeveloper } = useSession();
  const [prefix, setPrefix] = useState('');
  const [user, setUser] = useState('');
  const [page, setPage] = useState(1);
  const [asking, setAsking] = useState<Asking>();
  const key = useDelayed(prefix);
  const entries = useLoad(`${key}/${user}/${page}`, () =>
    call('GET /api/v1/kv', isDeveloper ? { query: { key, user, page } } : {}),
  );
  const shown = (entry: Entry) => isDeveloper || entry.key.startsWith(key);
  function close(changed: boolean) {
    setAsking(undefined);
    if (changed) entries.reload();
  }
  return (
    <>
      <PageHead title="Key-value" lead="Small values that agents and automations store for each user.">
        <Button kind="primary" onClick={() => setAsking({ kind: 'new' })}>
          New entry
        </Button>
      </PageHead>
      <div className="toolbar">
        <input
          type="search"
          className="search"
          aria-label="Keys that begin with"
          placeholder="Key begins with"
          value={prefix}
          onChange={(event) => {
            setPage(1);
            setPrefix(event.target.value);
          }}
        />
        {isDeveloper ? (
          <UserPicker
            label="Whose entries"
            any="All users"
            value={user}
            onChange={(next) => {
              setPage(1);
              setUser(next);
            }}
          />
        ) : null}
      </div>
      <Shown loaded={entries}>
        {(list) => {
          const found = list.data.filter(shown);
          if (found.length === 0)
            return (
              <Empty
                title={key === '' && user === '' ? 'No entries yet' : 'No matching entries'}
                action={
                  key === '' && user === '' ? (
                    <Button kind="primary" onClick={() => setAsking({ kind: 'new' })}>
                      Write the first entry
                    </Button>
                  ) : undefined
                }
              >
                An entry is a key with a text, often JSON. Each entry belongs to one user.
              </Empty>
            );
          return (
            <>
              <Table
                columns={[
                  'Key',
                  'Value',
                  ...(isDeveloper ? ['User'] : []),
                  'Changed',
                  { name: 'Actions', look: 'hidden' },
                ]}
              >
                {found.map((entry) => (
                  <tr key={`${entry.user}/${entry.key}`}>
                    <td className="main">
                      <button type="button" className="as-link" onClick={() => setAsking({ kind: 'edit', entry })}>
                        <code className="cut">{entry.key}</code>
                      </button>
                    </td>
                    <td>
                      <code className="cut faint value">{entry.value.slice(0, 120)}</code>
                    </td>
                    {isDeveloper ? <td className="cut">{entry.user_email ?? entry.user}</td> : null}
                    <td>
                      <Time at={entry.updated_at} />
                    </td>
                    <td className="row-actions">
                      <Button
                        kind="quiet"
                        aria-label={`Delete ${entry.key}`}
                        onClick={() => setAsking({ kind: 'delete', entry })}
                      >
                        Delete
                      </Button>
                    </td>
                  </tr>
                ))}
              </Table>
              {list.page === undefined ? null : (
                <Pager page={list as Parameters<typeof Pager>[0]['page']} onPage={setPage} />
              )}
            </>
          );
        }}
      </Shown>
      {asking?.kind === 'new' ? <NewEntry user={user} onClose={close} /> : null}
      {asking?.kind === 'edit' ? <EditEntry entry={asking.entry} onClose={close} /> : null}
      {asking?.kind === 'delete' ? <DeleteEntry entry={asking.entry} onClose={close} /> : null}
    </>
  );
}

/** One of the app's users; any other by e-mail. */
export function UserPicker({
  label,
  any,
  value,
  onChange,
}: {
  label: string;
  any: string;
  value: string;
  onChange: (user: string) => void;
}) {
  const users = useLoad('users', () => call('GET /api/v1/users', { query: { page_size: 100 } }));
  return (
    <select aria-label={label} value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">{any}</option>
      {users.data?.data.map((user) => (
        <option key={user.id} value={user.id}>
          {user.email ?? user.name ?? user.id}
        </option>
      ))}
    </select>
  );
}

function NewEntry({ user, onClose }: { user: string; onClose: (changed: boolean) => void }) {
  const { isDeveloper } = useSession();
  const [key, setKey] = useState('');
  const [value, setValue] = useState('');
  const [owner, setOwner] = useState(user);
  const create = useAction(async () => {
    await call('POST /api/v1/kv', { body: { key, value, ...(isDeveloper ? { user: owner } : {}) } });
    onClose(true);
  });
  return (
    <Dialog title="New entry" onClose={() => onClose(false)}>
      <Form
        submit="Create"
        busy={create.busy}
        error={create.error}
        onSubmit={() => create.run()}
        onCancel={() => onClose(false)}
      >
        {isDeveloper ? (
          <div className="field">
            <span className="label">User</span>
            <UserPicker label="User" any="Choose a user" value={owner} onChange={setOwner} />
          </div>
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
        required
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

/** Why text that looks like JSON is invalid; empty for other text, undefined for JSON. */
function jsonProblem(text: string): string | undefined {
  if (!/^\s*[[{"\d-]/.test(text)) return '';
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return `not JSON: ${error instanceof Error ? error.message : ''}`;
  }
}

function EditEntry({ entry, onClose }: { entry: Entry; onClose: (changed: boolean) => void }) {
  const { isDeveloper } = useSession();
  const path = { key: entry.key };
  const whose = isDeveloper ? { user: entry.user } : {};
  const opened = useLoad(entry.key, () => exchange('GET /api/v1/kv/{key}', { path, query: whose }));
  return (
    <Dialog title={entry.key} onClose={() => onClose(false)} wide>
      <Shown loaded={opened}>
        {({ data, etag }) => (
          <EditForm key={etag} path={path} whose={whose} value={data.value} etag={etag} onClose={onClose} />
        )}
      </Shown>
    </Dialog>
  );
}

type Conflict = { value: string | undefined; etag: string | undefined };

/** Saves only over the version that was opened. A newer value is shown beside the edited one. */
function EditForm({
  path,
  whose,
  value: openedValue,
  etag: openedEtag,
  onClose,
}: {
  path: { key: string };
  whose: { user?: string };
  value: string;
  etag: string | undefined;
  onClose: (changed: boolean) => void;
}) {
  const [value, setValue] = useState(openedValue);
  const [etag, setEtag] = useState(openedEtag);
  const [conflict, setConflict] = useState<Conflict>();
  const save = useAction(async (over: string | undefined) => {
    const condition: Record<string, string> = over === undefined ? { 'if-none-match': '*' } : { 'if-match': over };
    try {
      await call('PUT /api/v1/kv/{key}', { path, body: { value, ...whose }, headers: condition });
    } catch (error) {
      if (!isConflict(error)) throw error;
      setConflict(await readPresent(path, whose));
      return;
    }
    onClose(true);
  });
  return (
    <Form
      submit={conflict ? 'Save mine over it' : 'Save'}
      busy={save.busy}
      error={save.error}
      danger={conflict !== undefined}
      onSubmit={() => save.run(conflict ? conflict.etag : etag)}
      onCancel={() => onClose(false)}
    >
      {conflict ? (
        <div className="notice warning" role="alert">
          <p>
            <strong>Somebody changed it</strong> while you were editing. Both values are below: take theirs, or save
            yours over it.
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
              Take theirs
            </Button>
          )}
        </div>
      ) : null}
      <ValueField value={value} onChange={setValue} />
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

function DeleteEntry({ entry, onClose }: { entry: Entry; onClose: (changed: boolean) => void }) {
  const { isDeveloper } = useSession();
  const remove = useAction(async () => {
    const query = isDeveloper ? { user: entry.user } : {};
    await call('DELETE /api/v1/kv/{key}', { path: { key: entry.key }, query });
    onClose(true);
  });
  return (
    <Confirm
      title={`Delete ${entry.key}?`}
      action="Delete the entry"
      busy={remove.busy}
      error={remove.error}
      onConfirm={() => remove.run()}
      onClose={() => onClose(false)}
    >
      This also deletes its value. It cannot be undone.
    </Confirm>
  );
}
