import { useState } from 'react';
import { call, type Item } from '../../api/client.ts';
import { PrincipalPicker } from '../../principals/picker.tsx';
import { PrincipalName } from '../../principals/principal-name.tsx';
import { useSession } from '../../session.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { BulkButton } from '../../ui/bulk-button.tsx';
import { Button } from '../../ui/button.tsx';
import { Live } from '../../ui/live.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { asApiError, refresh, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { SearchField } from '../../ui/search-field.tsx';
import { Shown } from '../../ui/shown.tsx';
import { type Column, DataTable, Pager } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { toast } from '../../ui/toast.tsx';
import { EditEntry, NewEntry } from './kv-entry.tsx';
import { useWatch } from './use-watch.ts';

type Entry = Item<'GET /api/v1/kv'>;
type Asking = { kind: 'new' } | { kind: 'edit'; entry: Entry };

/** An entry that expires this soon leaves the list when it does. */
const soonMs = 60_000;
const expiryPollMs = 1_000;

/**
 * Entries of all users for developers, and end users' own entries. Keys with slashes are shown as folders. Changes to
 * the entries of one user appear automatically.
 */
export function KvPage() {
  const { isDeveloper } = useSession();
  const [{ key, user, page }, change] = useFilters({ key: '', user: '', page: '1' });
  const [asking, setAsking] = useState<Asking>();
  const query = isDeveloper ? { key, user, page: pageNumber(page), page_size: 100 } : {};
  const poll = ({ data }: { data: Entry[] }) => (data.some(expiresSoon) ? expiryPollMs : undefined);
  const entries = useApi('GET /api/v1/kv', { query }, { keep: true, poll });
  const watched = isDeveloper ? user || null : undefined;
  const isLive = useWatch(watched, key);
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
        {isLive ? <Live error={entries.error} /> : null}
        {watched === null ? <span className="faint">Choose a user to watch changes live.</span> : null}
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
              <Prefixes entries={found} isWhole={isWhole(list)} at={key} onChange={(next) => change({ key: next })} />
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

/** Whether the list has all entries, so that counting them counts all. */
function isWhole({ data, total_entries: total }: { data: Entry[]; total_entries?: number }): boolean {
  return total === undefined || total === data.length;
}

/** The next part of the keys at this level, with a count if all entries are shown, and a link to the level above. */
function Prefixes({
  entries,
  isWhole: counted,
  at,
  onChange,
}: {
  entries: Entry[];
  isWhole: boolean;
  at: string;
  onChange: (prefix: string) => void;
}) {
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
            {prefix.slice(at.length)} {counted ? <span className="faint">{number}</span> : null}
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
    cell: (entry) =>
      entry.user_email === undefined ? (
        <PrincipalName id={entry.user} />
      ) : (
        <span className="principal">{entry.user_email}</span>
      ),
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
    {
      id: 'expires',
      name: 'Expires',
      look: 'wide',
      sort: ({ expires_at }) => expires_at ?? '',
      cell: ({ expires_at }) => <Time at={expires_at} />,
    },
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
            return () => restoreEntry(entry, isDeveloper);
          }}
        >
          This also deletes its value. You can restore it for a few seconds.
        </DeleteButton>
      ),
    },
  ];
}

function expiresSoon({ expires_at }: Entry): boolean {
  return expires_at !== undefined && Date.parse(expires_at) - Date.now() < soonMs;
}

function removeEntry({ key, user }: Entry, isDeveloper: boolean) {
  return call('DELETE /api/v1/kv/{key}', { path: { key }, query: isDeveloper ? { user } : {} });
}

/** Writes a deleted entry again, with what is left of its time. Refused if its key was written meanwhile. */
async function restoreEntry({ key, value, user, expires_at }: Entry, isDeveloper: boolean): Promise<void> {
  const left = expires_at === undefined ? undefined : Math.ceil((Date.parse(expires_at) - Date.now()) / 1_000);
  const ttl = left === undefined ? {} : { ttl_seconds: Math.max(1, left) };
  await call('POST /api/v1/kv', { body: { key, value, ...ttl, ...(isDeveloper ? { user } : {}) } });
  refresh('GET /api/v1/kv');
}

function bulkActions(entries: Entry[], clear: () => void) {
  const isDeveloper = entries.some((entry) => 'user_email' in entry || 'user_name' in entry);
  return (
    <BulkButton
      label={`Delete ${entries.length}`}
      danger
      question="This also deletes their values. This cannot be undone."
      onRun={async () => {
        await removeEntries(entries, isDeveloper);
        refresh('GET /api/v1/kv');
        clear();
      }}
    />
  );
}

const batchOperationsMax = 100;

/** Deletes in one batch per user: either all of a user's entries are deleted, or none. */
async function removeEntries(entries: Entry[], isDeveloper: boolean): Promise<void> {
  const byUser = Map.groupBy(entries, ({ user }) => user);
  let deleted = 0;
  try {
    for (const [user, own] of byUser)
      for (let from = 0; from < own.length; from += batchOperationsMax) {
        const part = own.slice(from, from + batchOperationsMax);
        const operations = part.map(({ key }) => ({ op: 'delete' as const, key }));
        await call('POST /api/v1/kv_batch', { body: { operations, ...(isDeveloper ? { user } : {}) } });
        deleted += part.length;
      }
  } catch (error) {
    toast(`${entries.length - deleted} not deleted: ${asApiError(error).message}`, 'bad');
  }
  if (deleted > 0) toast(`${deleted} deleted`);
}
