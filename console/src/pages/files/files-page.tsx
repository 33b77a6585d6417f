import { Link } from 'wouter';
import { call } from '../../api/client.ts';
import type { StoredFile } from '../../api/generated.ts';
import { PrincipalPicker } from '../../principals/picker.tsx';
import { Owner } from '../../principals/principal-name.tsx';
import { useSession } from '../../session.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { forEachOf } from '../../ui/bulk.ts';
import { BulkButton } from '../../ui/bulk-button.tsx';
import { Button } from '../../ui/button.tsx';
import { DropZone } from '../../ui/drop-zone.tsx';
import { bytes } from '../../ui/format.ts';
import { Middle } from '../../ui/middle.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { SearchField } from '../../ui/search-field.tsx';
import { State } from '../../ui/state.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { startUploads } from '../../uploads.ts';
import { ownerMember } from '../people/agents-page.tsx';
import { FileThumb, FileType } from './file-type.tsx';
import { Thumbnail } from './preview.tsx';
import { UnfinishedUploads } from './unfinished-uploads.tsx';

const types: [value: string, name: string][] = [
  ['', 'All types'],
  ['image/*', 'Images'],
  ['text/*', 'Text and Markdown'],
  ['application/pdf', 'PDF'],
  ['application/json', 'JSON'],
  ['audio/*', 'Audio'],
  ['video/*', 'Video'],
];

type Order = 'filename' | '-filename' | 'size' | '-size' | 'created_at' | '-created_at';

/** All visible files, and the drop zone for new ones. Names with slashes are shown as folders. */
export function FilesPage() {
  const { place, isDeveloper } = useSession();
  const placeOrg = isDeveloper ? place.org : undefined;
  const [filters, change] = useFilters({ page: '1', q: '', type: '', owner: placeOrg ?? '', sort: '', folder: '' });
  const { page, q, type, owner, sort, folder } = filters;
  const query = {
    page: pageNumber(page),
    width: 64 as const,
    ...(q === '' ? {} : { search: q }),
    ...(type === '' ? {} : { content_type: type }),
    ...(sort === '' ? {} : { sort: sort as Order }),
    ...(folder === '' ? {} : { prefix: folder }),
    ...ownerMember(owner),
  };
  const files = useApi('GET /api/v1/files', { query }, { keep: true });
  const filtered = q !== '' || type !== '' || folder !== '' || owner !== (placeOrg ?? '');
  return (
    <>
      <PageHead title="Files" lead="What you have uploaded, and what extractions and automations have written." />
      <DropZone
        label="Files to upload"
        onFiles={(chosen) => startUploads(chosen, { org: placeOrg }, () => refresh('GET /api/v1/files'))}
      >
        <p>Drop files here, or</p>
      </DropZone>
      <UnfinishedUploads />
      <div className="toolbar">
        <SearchField
          label="Search files by name"
          placeholder="Search by name"
          value={q}
          onChange={(next) => change({ q: next })}
        />
        <select aria-label="Filter by type" value={type} onChange={(event) => change({ type: event.target.value })}>
          {types.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
        {isDeveloper ? (
          <PrincipalPicker
            label="Owner"
            kinds={['org', 'team', 'user', 'agent']}
            any="All owners"
            value={owner}
            onChange={(next) => change({ owner: next })}
          />
        ) : null}
      </div>
      <Folder path={folder} onChange={(next) => change({ folder: next })} />
      <PagedTable
        label="Files"
        loaded={files}
        columns={columnsOf(folder, (next) => change({ folder: next }))}
        rowId={({ id }) => id}
        order={{ value: sort, onChange: (next) => change({ sort: next }) }}
        onPage={(next) => change({ page: String(next) })}
        selection={{ nameOf: ({ filename }) => filename, actions: bulkActions }}
        empty={
          filtered ? (
            <Empty
              title="No matching files"
              action={<Button onClick={() => change({ q: '', type: '', folder: '', owner: '' })}>Show all</Button>}
            >
              No file has this name, type and owner.
            </Empty>
          ) : (
            <Empty title="No files yet">
              Drop a PDF, a picture or any other file above. You can then preview it, share it, extract it as Markdown
              and make it searchable.
            </Empty>
          )
        }
      />
    </>
  );
}

/** The current folder path. Each folder above is a link. */
function Folder({ path, onChange }: { path: string; onChange: (path: string) => void }) {
  if (path === '') return null;
  const parts = path.split('/').filter(Boolean);
  return (
    <nav aria-label="Folder" className="toolbar">
      <Button kind="quiet" onClick={() => onChange('')}>
        All files
      </Button>
      {parts.map((part, index) => {
        const prefix = `${parts.slice(0, index + 1).join('/')}/`;
        return (
          <Button key={prefix} kind="quiet" disabled={prefix === path} onClick={() => onChange(prefix)}>
            {part} /
          </Button>
        );
      })}
    </nav>
  );
}

/** The small picture of a file, or the icon of its type. */
function Look({ of }: { of: StoredFile }) {
  return (
    <Thumbnail url={of.picture_url}>
      <FileThumb of={of.content_type} />
    </Thumbnail>
  );
}

function columnsOf(folder: string, onFolder: (path: string) => void): Column<StoredFile>[] {
  return [
    { id: 'look', name: 'Preview', look: 'thumb', cell: (file) => <Look of={file} /> },
    {
      id: 'filename',
      name: 'Name',
      look: 'main',
      sort: ({ filename }) => filename,
      cell: ({ id, filename, shared }) => {
        const rest = filename.startsWith(folder) ? filename.slice(folder.length) : filename;
        const slash = rest.indexOf('/', 1);
        return (
          <span className="path">
            {slash > 0 ? (
              <button
                type="button"
                className="as-link inline"
                onClick={() => onFolder(folder + rest.slice(0, slash + 1))}
              >
                {rest.slice(0, slash + 1)}
              </button>
            ) : null}
            <Link href={`/files/${id}`}>
              <Middle text={slash > 0 ? rest.slice(slash + 1) : rest} />
            </Link>
            {shared ? <State value="shared" /> : null}
          </span>
        );
      },
    },
    { id: 'type', name: 'Type', look: 'wide', cell: (file) => <FileType of={file.content_type} /> },
    { id: 'owner', name: 'Owner', cell: (file) => <Owner of={file} /> },
    { id: 'size', name: 'Size', look: 'number', sort: ({ size }) => size, cell: ({ size }) => bytes(size) },
    { id: 'created_at', name: 'Added', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
  ];
}

function bulkActions(files: StoredFile[], clear: () => void) {
  const run = async (done: string, perform: (file: StoredFile) => Promise<unknown>) => {
    await forEachOf(files, done, perform);
    refresh('GET /api/v1/files');
    clear();
  };
  const images = files.every(({ content_type }) => content_type.startsWith('image/'));
  return (
    <>
      <BulkButton
        label="Extract text"
        onRun={() =>
          run('extractions started', ({ id }) =>
            call('POST /api/v1/extractions', { body: { file: id, destination_kind: 'storage' } }),
          )
        }
      />
      {images ? (
        <BulkButton
          label="Share by link"
          onRun={() =>
            run('shared', ({ id }) => call('PATCH /api/v1/files/{file}', { path: { file: id }, body: { share: true } }))
          }
        />
      ) : null}
      <BulkButton
        label={`Delete ${files.length}`}
        danger
        question="This also deletes their contents, links and access lists. This cannot be undone."
        onRun={() => run('deleted', ({ id }) => call('DELETE /api/v1/files/{file}', { path: { file: id } }))}
      />
    </>
  );
}
