import { call } from '../../api/client.ts';
import type { Upload } from '../../api/generated.ts';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { bytes } from '../../ui/format.ts';
import { PagedTable } from '../../ui/paged-table.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { useUploads } from '../../uploads.ts';

const columns: Column<Upload>[] = [
  { id: 'filename', name: 'Name', look: 'main', sort: ({ filename }) => filename, cell: ({ filename }) => filename },
  {
    id: 'stored',
    name: 'Stored',
    cell: ({ offset, length }) => `${bytes(offset)} of ${bytes(length)}`,
  },
  { id: 'expires', name: 'Expires', sort: (one) => one.expires_at, cell: (one) => <Time at={one.expires_at} /> },
  {
    id: 'actions',
    name: 'Actions',
    look: 'actions',
    cell: ({ id, filename }) => (
      <DeleteButton
        quiet={filename}
        title="Delete the upload?"
        action="Delete the upload"
        perform={async () => {
          await call('DELETE /api/v1/uploads/{upload}', { path: { upload: id } });
          refresh('GET /api/v1/uploads');
        }}
      >
        The bytes of “{filename}” that have arrived are deleted.
      </DeleteButton>
    ),
  },
];

/** Large uploads that stopped before their last byte. Shows nothing if there are none, or while this tab uploads. */
export function UnfinishedUploads() {
  const [{ uploads_page: page }, change] = useFilters({ uploads_page: '1' });
  const loaded = useApi('GET /api/v1/uploads', { query: { page: pageNumber(page), page_size: 10 } }, { keep: true });
  const sending = useUploads().length > 0;
  if (sending || !loaded.data || loaded.data.total_entries === 0) return null;
  return (
    <section className="stack" aria-label="Unfinished uploads">
      <h2>Unfinished uploads</h2>
      <p className="faint">To continue one, drop the same file above, in the browser that began it.</p>
      <PagedTable
        label="Unfinished uploads"
        loaded={loaded}
        columns={columns}
        rowId={({ id }) => id}
        onPage={(next) => change({ uploads_page: String(next) })}
        empty={null}
      />
    </section>
  );
}
