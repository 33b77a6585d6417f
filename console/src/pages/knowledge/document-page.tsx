import { useState } from 'react';
import { Link, useLocation, useSearchParams } from 'wouter';
import { call } from '../../api/client.ts';
import type { KnowledgeDocument } from '../../api/generated.ts';
import { Button, bytes, count, Empty, Json, PageHead, Pager, Shown, Time } from '../../ui/basics.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { MarkdownText } from '../../ui/markdown.tsx';
import { useAction, useLoad } from '../../ui/use-load.ts';

const linesShown = 400;
type Tab = 'text' | 'chunks' | 'metadata';

/** One document: its text, and the chunks that searches find. */
export function DocumentPage({ id }: { id: string }) {
  const document = useLoad(id, () => call('GET /api/v1/knowledge_documents/{document}', { path: { document: id } }));
  const [params] = useSearchParams();
  const line = Number(params.get('line') ?? 1);
  const [tab, setTab] = useState<Tab>('text');
  const [asking, setAsking] = useState(false);
  const [, navigate] = useLocation();
  const remove = useAction(() => call('DELETE /api/v1/knowledge_documents/{document}', { path: { document: id } }));
  return (
    <Shown loaded={document}>
      {(found) => (
        <>
          <p className="back">
            <Link href={`/knowledge/${found.source}`}>← Source</Link>
          </p>
          <PageHead
            title={found.title ?? found.source_url ?? found.id}
            lead={
              <>
                {count(found.total_lines, 'line')} · {bytes(found.total_size)} · changed <Time at={found.updated_at} />
                {found.source_url === undefined ? null : (
                  <>
                    {' '}
                    ·{' '}
                    <a href={found.source_url} target="_blank" rel="noreferrer noopener">
                      original
                    </a>
                  </>
                )}
              </>
            }
          >
            <Button kind="danger" onClick={() => setAsking(true)}>
              Delete
            </Button>
          </PageHead>
          <div className="tabs" role="tablist" aria-label="Parts of the document">
            {(['text', 'chunks', 'metadata'] as const).map((one) => (
              <button key={one} type="button" role="tab" aria-selected={tab === one} onClick={() => setTab(one)}>
                {one.charAt(0).toUpperCase() + one.slice(1)}
              </button>
            ))}
          </div>
          {tab === 'text' ? <Text document={found} from={Math.max(1, line)} /> : null}
          {tab === 'chunks' ? <Chunks document={found.id} /> : null}
          {tab === 'metadata' ? <Json value={found.metadata} /> : null}
          {asking ? (
            <Confirm
              title="Delete this document?"
              action="Delete the document"
              busy={remove.busy}
              error={remove.error}
              onClose={() => setAsking(false)}
              onConfirm={async () => {
                if (await remove.run()) navigate(`/knowledge/${found.source}`);
              }}
            >
              Searches no longer find it. A source that reads the web ingests it again with its next pull.
            </Confirm>
          ) : null}
        </>
      )}
    </Shown>
  );
}

function Text({ document, from }: { document: KnowledgeDocument; from: number }) {
  const [offset, setOffset] = useState(from);
  const content = useLoad(`${document.id}/${offset}`, () =>
    call('GET /api/v1/knowledge_documents/{document}/content', {
      path: { document: document.id },
      query: { offset, limit: linesShown, unit: 'lines' },
    }),
  );
  const end = Math.min(offset + linesShown - 1, document.total_lines);
  return (
    <section className="card">
      {document.total_lines > linesShown || offset > 1 ? (
        <div className="toolbar">
          <Button disabled={offset <= 1} onClick={() => setOffset(Math.max(1, offset - linesShown))}>
            Earlier
          </Button>
          <span className="faint">
            Lines {offset}–{end} of {document.total_lines}
          </span>
          <Button disabled={end >= document.total_lines} onClick={() => setOffset(offset + linesShown)}>
            Later
          </Button>
        </div>
      ) : null}
      <Shown loaded={content}>{(found) => <MarkdownText text={found.content} />}</Shown>
    </section>
  );
}

function Chunks({ document }: { document: string }) {
  const [page, setPage] = useState(1);
  const chunks = useLoad(`${document}/${page}`, () =>
    call('GET /api/v1/knowledge_documents/{document}/chunks', { path: { document }, query: { page } }),
  );
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
                  <p className="faint">
                    {chunk.heading_path.length > 0 ? `${chunk.heading_path.join(' › ')} · ` : ''}lines{' '}
                    {chunk.start_line}–{chunk.end_line} · {bytes(chunk.end_byte - chunk.start_byte)}
                  </p>
                  <MarkdownText text={chunk.content} />
                </li>
              ))}
            </ol>
            <Pager page={list} onPage={setPage} />
          </>
        )
      }
    </Shown>
  );
}
