import { useState } from 'react';
import { call, exchange, type Item } from '../../api/client.ts';
import { PrincipalPicker } from '../../principals/picker.tsx';
import { PrincipalName } from '../../principals/principal-name.tsx';
import { useSession } from '../../session.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { forEachOf } from '../../ui/bulk.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog, Form } from '../../ui/dialog.tsx';
import { CodeField, Field, fieldError } from '../../ui/field.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { refresh, useAction, useApi, useLoad } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { SearchField } from '../../ui/search-field.tsx';
import { Shown } from '../../ui/shown.tsx';
import { type Column, DataTable, Pager } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { toast } from '../../ui/toast.tsx';
import { BulkButton } from '../runs/runs-page.tsx';

type Entry = Item<'GET /api/v1/kv'>;
type Asking = { kind: 'new' } | { kind: 'edit'; entry: Entry };

/** Entries of all users for developers, and their own for end users. Keys with slashes are shown as folders. */
export function KvPage() {
  const { isDeveloper } = useSession();
  const [{ key, user, page }, change] = useFilters({ key: '', user: '', page: '1' });
  const [asking, setAsking] = useState<Asking>();
  const query = isDeveloper ? { key, user, page: pageNumber(page), page_size: 100 } : {};
  const entries = useApi('GET /api/v1/kv', { query }, { keep: true });
  const shown = (entry: Entry) => isDeveloper || entry.key.startsWith(key);
  const unfiltered = key === '' && user === '';
  return (
    <>
      <PageHead title="Key-value" lead="Small values that agents and automations store for each user.">
        <Button kind="primary" onClick={() => setAsking({ kind: 'new' })}>
          New entry
        </Button>
      </PageHead>
      <div className="toolbar">
        <SearchField
          label="Keys that begin with"
          placeholder="Key begins with"
          value={key}
          onChange={(next) => change({ key: next })}
        />
        {isDeveloper ? (
          <PrincipalPicker
            label="Whose entries"
            kinds={['user']}
            any="All users"
            value={user}
            onChange={(next) => change({ user: next })}
          />
        ) : null}
      </div>
      <Shown loaded={entries}>
        {(list) => {
          const found = list.data.filter(shown);
          if (found.length === 0)
            return (
              <Empty
                title={unfiltered ? 'No entries yet' : 'No matching entries'}
                action={
                  unfiltered ? (
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
              <Prefixes entries={found} at={key} onChange={(next) => change({ key: next })} />
              <DataTable
                label="Entries"
                columns={columnsOf(isDeveloper, (entry) => setAsking({ kind: 'edit', entry }))}
                rows={found}
                rowId={(entry) => `${entry.user}/${entry.key}`}
                selection={{ nameOf: (entry) => entry.key, actions: bulkActions }}
              />
              {list.page === undefined ? null : (
                <Pager
                  page={list as Parameters<typeof Pager>[0]['page']}
                  onPage={(next) => change({ page: String(next) })}
                />
              )}
            </>
          );
        }}
      </Shown>
      {asking?.kind === 'new' ? <NewEntry user={user} onClose={() => setAsking(undefined)} /> : null}
      {asking?.kind === 'edit' ? <EditEntry entry={asking.entry} onClose={() => setAsking(undefined)} /> : null}
    </>
  );
}

/** The next parts of the keys here, each with its count: one step down a tree; and the way up. */
function Prefixes({ entries, at, onChange }: { entries: Entry[]; at: string; onChange: (prefix: string) => void }) {
  const counts = new Map<string, number>();
  for (const { key } of entries) {
    const slash = key.indexOf('/', at.length);
    if (slash > 0) counts.set(key.slice(0, slash + 1), (counts.get(key.slice(0, slash + 1)) ?? 0) + 1);
  }
  const up = at.replace(/[^/]*\/?$/, '');
  if (counts.size === 0 && at === '') return null;
  return (
    <nav className="toolbar" aria-label="Prefixes">
      {at === '' ? null : (
        <Button kind="quiet" onClick={() => onChange(up)}>
          ↑ {up === '' ? 'All keys' : up}
        </Button>
      )}
      {[...counts].map(([prefix, number]) =>
        prefix === at ? null : (
          <Button key={prefix} kind="quiet" onClick={() => onChange(prefix)}>
            {prefix.slice(at.length)} <span className="faint">{number}</span>
          </Button>
        ),
      )}
    </nav>
  );
}

function columnsOf(isDeveloper: boolean, onEdit: (entry: Entry) => void): Column<Entry>[] {
  const user: Column<Entry> = {
    id: 'user',
    name: 'User',
    sort: (entry) => entry.user_email ?? entry.user,
    cell: (entry) => (entry.user_email === undefined ? <PrincipalName id={entry.user} /> : entry.user_email),
  };
  return [
    {
      id: 'key',
      name: 'Key',
      look: 'main',
      sort: ({ key }) => key,
      cell: (entry) => (
        <button type="button" className="as-link" onClick={() => onEdit(entry)}>
          <code className="cut">{entry.key}</code>
        </button>
      ),
    },
    {
      id: 'value',
      name: 'Value',
      cell: ({ value }) => <code className="cut faint value">{value.slice(0, 120)}</code>,
    },
    ...(isDeveloper ? [user] : []),
    { id: 'changed', name: 'Changed', sort: (one) => one.updated_at, cell: (one) => <Time at={one.updated_at} /> },
    {
      id: 'actions',
      name: 'Actions',
      look: 'actions',
      cell: (entry) => (
        <DeleteButton
          title={`Delete ${entry.key}?`}
          action="Delete the entry"
          quiet={entry.key}
          perform={async () => {
            await removeEntry(entry, isDeveloper);
            refresh('GET /api/v1/kv');
          }}
        >
          This also deletes its value. It cannot be undone.
        </DeleteButton>
      ),
    },
  ];
}

function removeEntry({ key, user }: Entry, isDeveloper: boolean) {
  return call('DELETE /api/v1/kv/{key}', { path: { key }, query: isDeveloper ? { user } : {} });
}

function bulkActions(entries: Entry[], clear: () => void) {
  const isDeveloper = entries.some((entry) => 'user_email' in entry || 'user_name' in entry);
  return (
    <BulkButton
      label={`Delete ${entries.length}`}
      danger
      onRun={async () => {
        if (!window.confirm(`Delete ${entries.length} entries? This cannot be undone.`)) return;
        await forEachOf(entries, 'deleted', (entry) => removeEntry(entry, isDeveloper));
        refresh('GET /api/v1/kv');
        clear();
      }}
    />
  );
}

function NewEntry({ user, onClose }: { user: string; onClose: () => void }) {
  const { isDeveloper } = useSession();
  const [key, setKey] = useState('');
  const [value, setValue] = useState('');
  const [owner, setOwner] = useState(user);
  const create = useAction(
    async () => {
      await call('POST /api/v1/kv', { body: { key, value, ...(isDeveloper ? { user: owner } : {}) } });
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
        shownFields={['key', 'user']}
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

function EditEntry({ entry, onClose }: { entry: Entry; onClose: () => void }) {
  const { isDeveloper } = useSession();
  const path = { key: entry.key };
  const whose = isDeveloper ? { user: entry.user } : {};
  // Opened again, the entry is read again: an edit needs its present version.
  const [openings] = useState(() => Math.random());
  const opened = useLoad(['kv entry', entry.user, entry.key, openings], () =>
    exchange('GET /api/v1/kv/{key}', { path, query: whose }),
  );
  return (
    <Dialog title={entry.key} onClose={onClose} wide>
      <Shown loaded={opened}>
        {({ data, etag }) => (
          <EditForm key={etag} path={path} whose={whose} value={pretty(data.value)} etag={etag} onClose={onClose} />
        )}
      </Shown>
    </Dialog>
  );
}

/** JSON is shown formatted; saving it unchanged keeps it so. */
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
  etag: openedEtag,
  onClose,
}: {
  path: { key: string };
  whose: { user?: string };
  value: string;
  etag: string | undefined;
  onClose: () => void;
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
    refresh('GET /api/v1/kv');
    toast('Saved.');
    onClose();
  });
  return (
    <Form
      submit={conflict ? 'Save mine over it' : 'Save'}
      busy={save.busy}
      error={save.error}
      danger={conflict !== undefined}
      onSubmit={() => save.run(conflict ? conflict.etag : etag)}
      onCancel={onClose}
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
