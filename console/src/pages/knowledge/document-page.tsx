import { useState } from 'react';
import { Link, useLocation, useSearchParams } from 'wouter';
import { call } from '../../api/client.ts';
import type { KnowledgeDocument, KnowledgeDocumentChunk } from '../../api/generated.ts';
import { Owner } from '../../principals/principal-name.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Json } from '../../ui/code.tsx';
import { Id } from '../../ui/copy.tsx';
import { Switch } from '../../ui/field.tsx';
import { bytes, count } from '../../ui/format.ts';
import { MarkdownText } from '../../ui/markdown.tsx';
import { Details, Empty, PageHead } from '../../ui/page.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { Shown } from '../../ui/shown.tsx';
import { State } from '../../ui/state.tsx';
import { Pager } from '../../ui/table.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Time } from '../../ui/time.tsx';
import { EraseButton } from '../erasures/erase-button.tsx';
import { Access } from './access.tsx';
import { EditDocument } from './edit-document.tsx';
import { LinePager, linesShown } from './line-pager.tsx';
import './search.css';
import { documentName } from './document-name.ts';
import { sourceName } from './source-name.ts';
import { Versions } from './versions.tsx';

type Tab = 'text' | 'chunks' | 'metadata' | 'access' | 'versions';

/** One document: its text with chunk boundaries, and its metadata. */
export function DocumentPage({ id }: { id: string }) {
  const path = { document: id };
  const document = useApi('GET /api/v1/knowledge_documents/{document}', { path });
  const [params] = useSearchParams();
  const line = Number(params.get('line') ?? 1);
  const [{ tab }, change] = useFilters({ tab: 'text' });
  const [editing, setEditing] = useState(false);
  const [, navigate] = useLocation();
  return (
    <Shown loaded={document}>
      {(found) => (
        <>
          <PageHead title={documentName(found, found.id)} lead={<Lead document={found} />}>
            <Button onClick={() => setEditing(true)}>Edit</Button>
            <DeleteButton
              title="Delete this document?"
              action="Delete the document"
              perform={async () => {
                await call('DELETE /api/v1/knowledge_documents/{document}', { path });
                refresh('GET /api/v1/knowledge_documents');
                navigate(`/knowledge/${found.source}`);
              }}
            >
              Searches no longer find it. A source that reads the web ingests it again with its next pull.
            </DeleteButton>
            <EraseButton kind="document" id={found.id} name={documentName(found, found.id)} />
          </PageHead>
          <Tabs<Tab>
            label="Parts of the document"
            value={tab as Tab}
            onChange={(next) => change({ tab: next })}
            tabs={[
              { id: 'text', name: 'Text', panel: <Text document={found} from={Math.max(1, line)} /> },
              { id: 'chunks', name: 'Chunks', panel: <Chunks document={found.id} /> },
              { id: 'metadata', name: 'Metadata', panel: <Metadata document={found} /> },
              { id: 'access', name: 'Access', panel: <Access document={found} /> },
              ...(found.version === undefined
                ? []
                : [{ id: 'versions' as const, name: 'Versions', panel: <Versions document={found.id} /> }]),
            ]}
          />
          {editing ? <EditDocument document={found} onClose={() => setEditing(false)} /> : null}
        </>
      )}
    </Shown>
  );
}

function Lead({
  document: { id, source, total_lines, total_size, updated_at, source_url, acl },
}: {
  document: KnowledgeDocument;
}) {
  const from = useApi('GET /api/v1/knowledge_sources/{source}', { path: { source } }).data;
  return (
    <>
      <Link href={`/knowledge/${source}`}>{from ? sourceName(from) : 'Source'}</Link> · {count(total_lines, 'line')} ·{' '}
      {bytes(total_size)} · changed <Time at={updated_at} />
      {source_url === undefined ? null : (
        <>
          {' '}
          ·{' '}
          <a href={source_url} target="_blank" rel="noreferrer noopener">
            original
          </a>
        </>
      )}{' '}
      · <Id id={id} label={`…${id.slice(-6)}`} />
      {acl === undefined ? null : (
        <>
          {' '}
          · <State value="restricted" />
        </>
      )}
    </>
  );
}

function Metadata({ document }: { document: KnowledgeDocument }) {
  return (
    <section className="card">
      <Details
        rows={[
          ['Owner', <Owner key="owner" of={document} />],
          ['Type', document.content_type],
          [
            'File',
            document.file ? (
              <Link key="file" href={`/files/${document.file}`}>
                {document.file}
              </Link>
            ) : null,
          ],
          ['SHA-256', <code key="hash">{document.content_hash}</code>],
        ]}
      />
      <Json value={document.metadata} label="Metadata" />
    </section>
  );
}

function Text({ document, from }: { document: KnowledgeDocument; from: number }) {
  const [offset, setOffset] = useState(from);
  const [borders, setBorders] = useState(false);
  const path = { document: document.id };
  const query = { offset, limit: linesShown, unit: 'lines' as const };
  const content = useApi('GET /api/v1/knowledge_documents/{document}/content', { path, query });
  return (
    <section className="card">
      <div className="toolbar">
        <LinePager offset={offset} total={document.total_lines} onOffset={setOffset} />
        <Switch label="Show the borders of chunks" checked={borders} onChange={setBorders} />
      </div>
      {borders ? (
        <Bordered document={document.id} />
      ) : (
        <Shown loaded={content}>{(found) => <MarkdownText text={found.content} />}</Shown>
      )}
    </section>
  );
}

const chunksShown = 100;

/** The text, divided at its chunk boundaries. */
function Bordered({ document }: { document: string }) {
  const [{ page }, change] = useFilters({ page: '1' });
  const query = { page: pageNumber(page), page_size: chunksShown };
  const chunks = useApi('GET /api/v1/knowledge_documents/{document}/chunks', { path: { document }, query });
  return (
    <Shown loaded={chunks}>
      {(list) => (
        <>
          {list.data.map((chunk) => (
            <div key={chunk.id} className="stack">
              <p className="chunk-border">{placeOf(chunk)}</p>
              <MarkdownText text={chunk.content} />
            </div>
          ))}
          <Pager page={list} onPage={(next) => change({ page: String(next) })} />
        </>
      )}
    </Shown>
  );
}

function placeOf({ heading_path, start_line, end_line, start_byte, end_byte }: KnowledgeDocumentChunk): string {
  const headings = heading_path.length > 0 ? `${heading_path.join(' › ')} · ` : '';
  return `${headings}lines ${start_line}–${end_line} · ${bytes(end_byte - start_byte)}`;
}

function Chunks({ document }: { document: string }) {
  const [{ page }, change] = useFilters({ page: '1' });
  const chunks = useApi('GET /api/v1/knowledge_documents/{document}/chunks', {
    path: { document },
    query: { page: pageNumber(page) },
  });
  return (
    <Shown loaded={chunks}>
      {(list) =>
        list.data.length === 0 ? (
          <Empty title="No chunks">The document has no text.</Empty>
        ) : (
          <>
            <ol className="hits">
              {list.data.map((chunk) => (
                <li key={chunk.id} className="card hit">
                  <p className="faint">{placeOf(chunk)}</p>
                  <MarkdownText text={chunk.content} />
                </li>
              ))}
            </ol>
            <Pager page={list} onPage={(next) => change({ page: String(next) })} />
          </>
        )
      }
    </Shown>
  );
}
