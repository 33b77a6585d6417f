import { Link } from 'wouter';
import { call } from '../../api/client.ts';
import type { Extraction } from '../../api/generated.ts';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { forEachOf } from '../../ui/bulk.ts';
import { BulkButton } from '../../ui/bulk-button.tsx';
import { bytes } from '../../ui/format.ts';
import { Empty, PageHead } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { State } from '../../ui/state.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { FileName } from '../files/file-name.tsx';
import { StartForm } from './start-form.tsx';

const firstPollMs = 700;

const columns: Column<Extraction>[] = [
  {
    id: 'source',
    name: 'Source',
    look: 'main',
    sort: ({ url, file }) => url ?? file ?? '',
    cell: (one) => (
      <Link href={`/extractions/${one.id}`}>
        <Source extraction={one} />
      </Link>
    ),
  },
  { id: 'state', name: 'State', sort: ({ state }) => state, cell: ({ state }) => <State value={state} /> },
  {
    id: 'outputs',
    name: 'Outputs',
    look: 'number',
    sort: (one) => one.output_count,
    cell: ({ output_count, progress }) => (
      <span className="faint">
        {output_count.toLocaleString('en')}
        {progress.failed > 0 ? `, ${progress.failed} failed` : ''}
      </span>
    ),
  },
  { id: 'size', name: 'Size', look: 'number', sort: (one) => one.byte_count, cell: (one) => bytes(one.byte_count) },
  { id: 'started', name: 'Started', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
];

/** All extractions, and the form that starts one. */
export function ExtractionsPage() {
  const [{ page, state, kind }, change] = useFilters({ page: '1', state: '', kind: '' });
  const query = {
    page: pageNumber(page),
    ...(state === '' ? {} : { state: state as Extraction['state'] }),
    ...(kind === '' ? {} : { kind: kind as Extraction['kind'] }),
  };
  const poll = ({ data }: { data: Extraction[] }) =>
    data.some((one) => one.state === 'running') ? firstPollMs : undefined;
  const loaded = useApi('GET /api/v1/extractions', { query }, { poll, keep: true });
  return (
    <>
      <PageHead title="Extractions" lead="Documents, web pages and whole sites as Markdown." />
      <StartForm />
      <div className="toolbar">
        <h2>Started before</h2>
        <select aria-label="Filter by kind" value={kind} onChange={(event) => change({ kind: event.target.value })}>
          <option value="">All kinds</option>
          <option value="document">Documents</option>
          <option value="link">Pages</option>
          <option value="site">Sites</option>
        </select>
        <select aria-label="Filter by state" value={state} onChange={(event) => change({ state: event.target.value })}>
          <option value="">All</option>
          <option value="running">Running</option>
          <option value="done">Done</option>
          <option value="failed">Failed</option>
        </select>
      </div>
      <PagedTable
        label="Extractions"
        loaded={loaded}
        columns={columns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        selection={{
          nameOf: ({ url, file, id }) => url ?? file ?? id,
          actions: (rows, clear) => (
            <BulkButton
              label={`Remove ${rows.length}`}
              danger
              question="Extractions in progress are stopped. The files that they have written stay."
              onRun={async () => {
                await forEachOf(rows, 'removed', ({ id }) =>
                  call('DELETE /api/v1/extractions/{extraction}', { path: { extraction: id } }),
                );
                refresh('GET /api/v1/extractions');
                clear();
              }}
            />
          ),
        }}
        empty={
          <Empty title={state === '' && kind === '' ? 'No extraction yet' : 'No matching extractions'}>
            Choose a document or enter a web address above. The Markdown appears beside the original, and as a file.
          </Empty>
        }
      />
    </>
  );
}

/** The source of the extraction: the name of the file, or the address of the page or site. */
function Source({ extraction: { kind, url, file } }: { extraction: Extraction }) {
  if (file !== undefined) return <FileName id={file} />;
  return (
    <>
      {url}
      {kind === 'site' ? <State value="quiet" label="site" /> : null}
    </>
  );
}
