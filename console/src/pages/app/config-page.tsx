import { Link } from 'wouter';
import type { ConfigEntry } from '../../api/generated.ts';
import { PrincipalPicker } from '../../principals/picker.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Code } from '../../ui/code.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { useApi } from '../../ui/query.ts';
import { SearchField } from '../../ui/search-field.tsx';
import { Shown } from '../../ui/shown.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { ownerMember } from '../people/agents-page.tsx';

/** The versioned entries that extractions write for the app, an org or an agent. */
export function ConfigPage() {
  const [{ page, prefix, owner, open }, change] = useFilters({ page: '1', prefix: '', owner: '', open: '' });
  const query = { page: pageNumber(page), ...(prefix === '' ? {} : { prefix }), ...ownerMember(owner) };
  const entries = useApi('GET /api/v1/config', { query }, { keep: true });
  const columns: Column<ConfigEntry>[] = [
    {
      id: 'path',
      name: 'Path',
      look: 'main',
      sort: (one) => one.virtual_path,
      cell: (one) => (
        <button type="button" className="as-link" onClick={() => change({ open: one.virtual_path, page })}>
          {one.virtual_path}
        </button>
      ),
    },
    { id: 'type', name: 'Type', cell: (one) => <span className="faint">{one.content_type}</span> },
    { id: 'version', name: 'Version', look: 'number', sort: (one) => one.version, cell: (one) => one.version },
    { id: 'file', name: 'File', look: 'wide', cell: (one) => <Link href={`/files/${one.file}`}>Open</Link> },
    { id: 'changed', name: 'Changed', sort: (one) => one.updated_at, cell: (one) => <Time at={one.updated_at} /> },
  ];
  return (
    <>
      <PageHead title="Config" lead="Versioned texts by path, written by extractions with the destination “config”." />
      <div className="toolbar">
        <SearchField
          label="Paths that begin with"
          placeholder="Path begins with"
          value={prefix}
          onChange={(next) => change({ prefix: next })}
        />
        <PrincipalPicker
          label="Owner"
          kinds={['org', 'agent']}
          any="The app"
          value={owner}
          onChange={(next) => change({ owner: next })}
        />
      </div>
      <PagedTable
        label="Config entries"
        loaded={entries}
        columns={columns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        empty={
          <Empty
            title={prefix === '' ? 'No entries yet' : 'No matching entries'}
            action={
              <Link className="button plain" href="/extractions">
                Go to the extractions
              </Link>
            }
          >
            An extraction with the destination config writes one for each output, and a new version at each run.
          </Empty>
        }
      />
      {open === '' ? null : <Entry path={open} owner={owner} onClose={() => change({ open: '', page })} />}
    </>
  );
}

function Entry({ path, owner, onClose }: { path: string; owner: string; onClose: () => void }) {
  const [{ version }, change] = useFilters({ version: '' });
  const query = { ...ownerMember(owner), ...(version === '' ? {} : { version: Number(version) }) };
  const entry = useApi('GET /api/v1/config/{path}', { path: { path }, query });
  return (
    <Dialog title={path} onClose={onClose} wide>
      <Shown loaded={entry}>
        {(found) => (
          <>
            <div className="toolbar">
              <span className="faint">
                Version {found.version} of {found.current_version.version_number}
              </span>
              <Button disabled={found.version <= 1} onClick={() => change({ version: String(found.version - 1) })}>
                Earlier version
              </Button>
              <Button
                disabled={found.version >= found.current_version.version_number}
                onClick={() => change({ version: String(found.version + 1) })}
              >
                Later version
              </Button>
            </div>
            <Code text={found.content ?? ''} label={`Text of ${path}`} />
          </>
        )}
      </Shown>
    </Dialog>
  );
}
