import { Link } from 'wouter';
import type { Erasure } from '../../api/generated.ts';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Empty, PageHead } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { useApi } from '../../ui/query.ts';
import { State } from '../../ui/state.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { removedTotal, subjectOf } from './subject.ts';

const firstPollMs = 800;

const columns: Column<Erasure>[] = [
  {
    id: 'subject',
    name: 'Erased',
    look: 'main',
    cell: (erasure) => {
      const { kind, id } = subjectOf(erasure);
      return (
        <Link href={`/erasures/${erasure.id}`} title={id}>
          {kind} …{id.slice(-8)}
        </Link>
      );
    },
  },
  { id: 'status', name: 'Status', sort: ({ status }) => status, cell: ({ status }) => <State value={status} /> },
  {
    id: 'removed',
    name: 'Rows removed',
    look: 'number',
    sort: removedTotal,
    cell: (erasure) => removedTotal(erasure).toLocaleString('en'),
  },
  { id: 'files', name: 'Files too', look: 'wide', cell: (one) => (one.user || one.files ? 'yes' : 'no') },
  { id: 'ordered', name: 'Ordered', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
  { id: 'done', name: 'Done', sort: (one) => one.completed_at ?? '', cell: (one) => <Time at={one.completed_at} /> },
];

/** All erasures of the app or sandbox, newest first, with their progress. */
export function ErasuresPage() {
  const [{ page }, change] = useFilters({ page: '1' });
  const poll = ({ data }: { data: Erasure[] }) => (data.some(isRunning) ? firstPollMs : undefined);
  const loaded = useApi('GET /api/v1/erasures', { query: { page: pageNumber(page) } }, { poll, keep: true });
  return (
    <>
      <PageHead
        title="Erasures"
        lead="What was deleted with everything that is stored under it. Each ends with a signed certificate."
      />
      <PagedTable
        label="Erasures"
        loaded={loaded}
        columns={columns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        empty={
          <Empty title="Nothing was erased yet">
            Erase a user, a document or a source from its page. The certificate says what was removed, what remains
            where, and who outside had received it.
          </Empty>
        }
      />
    </>
  );
}

function isRunning({ status }: Erasure): boolean {
  return status === 'running';
}
