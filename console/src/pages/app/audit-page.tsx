import type { AuditEntry, CredentialUse } from '../../api/generated.ts';
import { LedgerLine } from '../../ledger/ledger-line.tsx';
import { PrincipalPicker } from '../../principals/picker.tsx';
import { PrincipalName } from '../../principals/principal-name.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Id } from '../../ui/copy.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { useApi } from '../../ui/query.ts';
import { SearchField } from '../../ui/search-field.tsx';
import { State } from '../../ui/state.tsx';
import type { Column } from '../../ui/table.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Time } from '../../ui/time.tsx';
import { actionWords } from '../../ui/words.ts';

type Tab = 'changes' | 'credentials';

/** Who changed what, and which credentials were used. */
export function AuditPage() {
  const [{ tab }, change] = useFilters({ tab: 'changes' });
  return (
    <>
      <PageHead title="Audit log" lead="Every change in the app, and the use of its credentials by day." />
      <Tabs<Tab>
        label="Parts of the audit log"
        value={tab as Tab}
        onChange={(next) => change({ tab: next })}
        tabs={[
          { id: 'changes', name: 'Changes', panel: <Changes /> },
          { id: 'credentials', name: 'Use of credentials', panel: <Uses /> },
        ]}
      />
      <LedgerLine />
    </>
  );
}

const changeColumns: Column<AuditEntry>[] = [
  {
    id: 'action',
    name: 'Action',
    look: 'main',
    sort: ({ action }) => action,
    cell: ({ action }) => <span title={action}>{actionWords(action)}</span>,
  },
  { id: 'actor', name: 'Actor', cell: ({ actor }) => <Actor actor={actor} /> },
  {
    id: 'resource',
    name: 'Resource',
    cell: ({ resource }) => (resource === undefined ? '–' : <Id id={resource} label={shorten(resource)} />),
  },
  {
    id: 'status',
    name: 'Result',
    sort: ({ status }) => status ?? 0,
    cell: ({ status, attempts }) => (
      <>
        <State
          value={status !== null && status < 400 ? 'done' : 'failed'}
          label={status === null ? 'not finished' : String(status)}
        />
        {attempts !== undefined && attempts > 1 ? ` ${attempts} attempts` : ''}
      </>
    ),
  },
  {
    id: 'address',
    name: 'Address',
    look: 'wide',
    cell: ({ address }) => <span className="faint">{address ?? '–'}</span>,
  },
  { id: 'at', name: 'When', sort: ({ at }) => at, cell: ({ at }) => <Time at={at} /> },
];

function shorten(id: string): string {
  return id.length > 14 ? `${id.slice(0, 4)}…${id.slice(-6)}` : id;
}

function Actor({ actor: { kind, id } }: { actor: AuditEntry['actor'] }) {
  if (kind === 'user') return <PrincipalName id={id} />;
  return (
    <>
      {kind.replaceAll('_', ' ')} <Id id={id} label={`…${id.slice(-4)}`} />
    </>
  );
}

function Changes() {
  const [{ page, actor, action, resource }, change] = useFilters({ page: '1', actor: '', action: '', resource: '' });
  const given = Object.entries({ actor, action, resource }).filter(([, value]) => value !== '');
  const query = { page: pageNumber(page), ...Object.fromEntries(given) };
  const entries = useApi('GET /api/v1/audit', { query }, { keep: true });
  return (
    <>
      <div className="toolbar">
        <PrincipalPicker
          label="Actor"
          kinds={['user']}
          any="Any actor"
          value={actor}
          onChange={(next) => change({ actor: next })}
        />
        <SearchField label="Action" placeholder="Action" value={action} onChange={(next) => change({ action: next })} />
        <SearchField
          label="Resource"
          placeholder="Id of a resource"
          value={resource}
          onChange={(next) => change({ resource: next })}
        />
      </div>
      <PagedTable
        label="Changes"
        loaded={entries}
        columns={changeColumns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        empty={
          <Empty title={given.length === 0 ? 'No changes yet' : 'Nothing matches'}>
            Every request that changes something is listed here, with its caller and its result.
          </Empty>
        }
      />
    </>
  );
}

const useColumns: Column<CredentialUse>[] = [
  { id: 'day', name: 'Day', look: 'main', sort: ({ day }) => day, cell: ({ day }) => day },
  {
    id: 'credential',
    name: 'Credential',
    cell: ({ credential, kind }) => (
      <>
        {kind.replaceAll('_', ' ')} <Id id={credential} label={shorten(credential)} />
      </>
    ),
  },
  {
    id: 'requests',
    name: 'Requests',
    look: 'number',
    sort: (one) => one.requests,
    cell: (one) => one.requests.toLocaleString('en'),
  },
  {
    id: 'refused',
    name: 'Refused',
    look: 'number',
    sort: (one) => one.refused,
    cell: (one) => one.refused.toLocaleString('en'),
  },
  { id: 'first', name: 'First', look: 'wide', sort: (one) => one.first_at, cell: (one) => <Time at={one.first_at} /> },
  { id: 'last', name: 'Last', sort: (one) => one.last_at, cell: (one) => <Time at={one.last_at} /> },
];

function Uses() {
  const [{ page }, change] = useFilters({ page: '1' });
  const uses = useApi('GET /api/v1/credential_uses', { query: { page: pageNumber(page) } }, { keep: true });
  return (
    <PagedTable
      label="Use of credentials"
      loaded={uses}
      columns={useColumns}
      rowId={({ credential, day, kind }) => `${kind}/${credential}/${day}`}
      onPage={(next) => change({ page: String(next) })}
      empty={<Empty title="No credential has been used yet">Requests are counted for each credential and day.</Empty>}
    />
  );
}
