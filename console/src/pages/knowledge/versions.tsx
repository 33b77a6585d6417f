import { useState } from 'react';
import { call, type Item } from '../../api/client.ts';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Confirm, Dialog } from '../../ui/dialog.tsx';
import { Field } from '../../ui/field.tsx';
import { count } from '../../ui/format.ts';
import { MarkdownText } from '../../ui/markdown.tsx';
import { Empty } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { refresh, useAction, useApi } from '../../ui/query.ts';
import { Scroll } from '../../ui/scroll.tsx';
import { Shown } from '../../ui/shown.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { toast } from '../../ui/toast.tsx';
import { refreshDocuments } from './edit-document.tsx';
import { ended, isActive } from './ingestions.tsx';
import { LinePager, linesShown } from './line-pager.tsx';

const list = 'GET /api/v1/knowledge_documents/{document}/versions';
export type Version = Item<typeof list>;

/** What a document is and was, newest first: each version can be read, compared with another one, and restored. */
export function Versions({ document }: { document: string }) {
  const [{ page }, change] = useFilters({ page: '1' });
  const loaded = useApi(list, { path: { document }, query: { page: pageNumber(page) } }, { keep: true });
  const [compared, setCompared] = useState<number>();
  const numbers = loaded.data?.data.map(({ version }) => version) ?? [];
  const columns: Column<Version>[] = [
    {
      id: 'version',
      name: 'Version',
      look: 'main',
      cell: ({ version, current }) => (
        <>
          {version} {current ? <span className="faint">· current</span> : null}
        </>
      ),
    },
    { id: 'title', name: 'Title', look: 'wide', cell: ({ title }) => title ?? '–' },
    { id: 'lines', name: 'Lines', look: 'number', cell: ({ total_lines }) => total_lines.toLocaleString('en') },
    { id: 'from', name: 'From', cell: ({ created_at }) => <Time at={created_at} /> },
    { id: 'until', name: 'Until', cell: ({ replaced_at }) => (replaced_at ? <Time at={replaced_at} /> : '–') },
    {
      id: 'actions',
      name: 'Actions',
      look: 'actions',
      cell: (one) => (
        <>
          {numbers.length > 1 ? (
            <Button kind="quiet" aria-label={`Compare version ${one.version}`} onClick={() => setCompared(one.version)}>
              Compare
            </Button>
          ) : null}
          <ReadVersion version={one} />
          {one.current ? null : <RestoreVersion version={one} />}
        </>
      ),
    },
  ];
  return (
    <>
      <PagedTable
        label="Versions"
        loaded={loaded}
        columns={columns}
        rowId={({ version }) => String(version)}
        onPage={(next) => change({ page: String(next) })}
        empty={<Empty title="No versions">The source keeps none.</Empty>}
      />
      {compared === undefined ? null : (
        <Compared
          key={compared}
          document={document}
          version={compared}
          bases={numbers.filter((number) => number !== compared)}
          onClose={() => setCompared(undefined)}
        />
      )}
    </>
  );
}

/** The lines in which a version differs from another one, at first from the one before. */
function Compared({
  document,
  version,
  bases,
  onClose,
}: {
  document: string;
  version: number;
  bases: number[];
  onClose: () => void;
}) {
  const [base, setBase] = useState(() => bases.find((number) => number < version) ?? bases[0]);
  const path = { document, version: String(version) };
  const query = base === undefined ? {} : { base };
  const loaded = useApi(
    'GET /api/v1/knowledge_documents/{document}/versions/{version}/comparison',
    { path, query },
    { keep: true },
  );
  return (
    <Dialog title={`Changes of version ${version}`} wide onClose={onClose}>
      <div className="stack">
        <Field label="Compared with">
          {(id, described) => (
            <select id={id} {...described} value={base} onChange={(event) => setBase(Number(event.target.value))}>
              {bases.map((number) => (
                <option key={number} value={number}>
                  Version {number}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Shown loaded={loaded}>
          {({ added_lines, removed_lines, title, metadata, hunks, truncated }) => (
            <>
              <p className="faint">
                {count(added_lines, 'line')} added, {removed_lines.toLocaleString('en')} removed
                {title ? ` · title: “${title.before ?? ''}” → “${title.after ?? ''}”` : ''}
                {metadata.length > 0 ? ` · metadata: ${metadata.join(', ')}` : ''}
              </p>
              {hunks.map((hunk) => (
                <Scroll key={`${hunk.old_start}/${hunk.new_start}`} label="Changed lines" className="code-box">
                  <pre className="code comparison">
                    {hunk.lines.map(({ type, text }, at) => (
                      // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a comparison never change places
                      <Line key={at} type={type} text={text} />
                    ))}
                  </pre>
                </Scroll>
              ))}
              {truncated ? <p className="hint">Only the first changes are shown.</p> : null}
            </>
          )}
        </Shown>
      </div>
    </Dialog>
  );
}

function Line({ type, text }: { type: 'same' | 'removed' | 'added'; text: string }) {
  if (type === 'same') return <span>{`  ${text}\n`}</span>;
  return type === 'added' ? <ins>{`+ ${text}\n`}</ins> : <del>{`- ${text}\n`}</del>;
}

/** A button that opens the text of a version. */
export function ReadVersion({ version }: { version: Version }) {
  const [reading, setReading] = useState(false);
  return (
    <>
      <Button kind="quiet" aria-label={`Read version ${version.version}`} onClick={() => setReading(true)}>
        Read
      </Button>
      {reading ? <VersionText version={version} onClose={() => setReading(false)} /> : null}
    </>
  );
}

function VersionText({
  version: { document, version, title, total_lines },
  onClose,
}: {
  version: Version;
  onClose: () => void;
}) {
  const [offset, setOffset] = useState(1);
  const loaded = useApi('GET /api/v1/knowledge_documents/{document}/versions/{version}', {
    path: { document, version: String(version) },
    query: { offset, limit: linesShown, unit: 'lines' },
  });
  return (
    <Dialog title={`${title ?? 'Untitled'}, version ${version}`} wide onClose={onClose}>
      <div className="stack">
        {total_lines > linesShown ? (
          <div className="toolbar">
            <LinePager offset={offset} total={total_lines} onOffset={setOffset} />
          </div>
        ) : null}
        <Shown loaded={loaded}>{({ content }) => <MarkdownText text={content} />}</Shown>
      </div>
    </Dialog>
  );
}

/** A button that makes a version the newest one. A deleted document comes back with it. */
export function RestoreVersion({ version: { document, version, title, deleted_at } }: { version: Version }) {
  const [asking, setAsking] = useState(false);
  const restore = useAction(async () => {
    const started = await call('POST /api/v1/knowledge_documents/{document}/versions/{version}/restore', {
      path: { document, version: String(version) },
    });
    const ingestion = await ended(started);
    refreshDocuments();
    refresh('GET /api/v1/knowledge_sources/{source}/deleted_documents');
    toast(isActive(ingestion) ? 'It is being restored.' : 'Restored.', 'good');
  });
  return (
    <>
      <Button
        kind="quiet"
        aria-label={deleted_at ? `Restore ${title ?? document}` : `Restore version ${version}`}
        onClick={() => setAsking(true)}
      >
        Restore
      </Button>
      {asking ? (
        <Confirm
          title={deleted_at ? `Restore ${title ?? 'the document'}?` : `Restore version ${version}?`}
          action="Restore it"
          busy={restore.busy}
          error={restore.error}
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            if (await restore.run()) setAsking(false);
          }}
        >
          {deleted_at
            ? 'The document comes back under its id, with its text, title, metadata and permissions.'
            : 'The document gets the text, title and metadata of this version, as a new version. No version is lost.'}
        </Confirm>
      ) : null}
    </>
  );
}
