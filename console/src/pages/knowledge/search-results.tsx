import { type RefObject, useEffect, useRef, useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/client.ts';
import type { SearchHit } from '../../api/generated.ts';
import { Button } from '../../ui/button.tsx';
import { count } from '../../ui/format.ts';
import { MarkdownText } from '../../ui/markdown.tsx';
import { Empty } from '../../ui/page.tsx';
import { useLoad } from '../../ui/query.ts';
import { Scroll } from '../../ui/scroll.tsx';
import { Shown } from '../../ui/shown.tsx';
import { State } from '../../ui/state.tsx';
import { documentName } from './document-name.ts';

export type Explained = {
  chunks: number;
  average_length: number;
  terms: { term: string; document_frequency: number; idf: number }[];
  vectors_unavailable?: string;
};
type Why = { fulltext_rank?: number; fulltext_score?: number; vector_rank?: number; similarity?: number };
export type Found = { hits: SearchHit[]; explain: Explained | undefined; mode: string };

/** The hits of one search. Next to another search, each hit shows its rank there. */
export function Results({ found: { hits, explain, mode }, other }: { found: Found; other: Found | undefined }) {
  const best = Math.max(...hits.map((hit) => hit.score), Number.MIN_VALUE);
  const terms = explain?.terms ?? [];
  return (
    <section className="stack" aria-label={other ? `Hits by ${mode}` : 'Hits'} aria-live="polite">
      <div className="toolbar">
        <h2>{count(hits.length, 'hit')}</h2>
        <span className="faint">
          {other ? `${mode}, ` : ''}among {count(explain?.chunks ?? 0, 'chunk')}
        </span>
      </div>
      {explain?.vectors_unavailable === undefined ? null : (
        <p className="notice">Ranked by words only, without vectors: {explain.vectors_unavailable}</p>
      )}
      {terms.length === 0 ? null : (
        <p className="terms">
          <span className="faint">Search terms:</span>
          {terms.map(({ term, document_frequency, idf }) => (
            <span key={term} className="term" title={`weight ${idf.toFixed(2)}`}>
              {term}{' '}
              <span className="faint">
                in {document_frequency} · weight {idf.toFixed(2)}
              </span>
            </span>
          ))}
        </p>
      )}
      {hits.length === 0 ? (
        <Empty title="No results">Try other words, the mode “Vectors”, or no filter.</Empty>
      ) : (
        <ol className="hits">
          {hits.map((hit, at) => (
            <Hit
              key={hit.id}
              hit={hit}
              place={at + 1}
              otherPlace={other ? other.hits.findIndex(({ id }) => id === hit.id) + 1 : undefined}
              best={best}
              terms={terms.map(({ term }) => term)}
            />
          ))}
        </ol>
      )}
    </section>
  );
}

function Hit({
  hit,
  place,
  otherPlace,
  best,
  terms,
}: {
  hit: SearchHit;
  place: number;
  /** The rank in the other search; 0 if it is not there. */
  otherPlace: number | undefined;
  best: number;
  terms: string[];
}) {
  const why = (hit.explain ?? {}) as Why;
  const headings = (hit.raw_content.heading_path ?? []) as string[];
  const [around, setAround] = useState(false);
  const text = useRef<HTMLDivElement>(null);
  useHighlights(text, terms, hit.id);
  return (
    <li className="card hit">
      <header>
        <span className="place-number">{place}</span>
        <div className="grow">
          <Link href={`/knowledge/documents/${hit.document}?line=${hit.start_line}`}>
            {documentName(hit, hit.document)}
          </Link>
          <p className="faint">
            {headings.length > 0 ? `${headings.join(' › ')} · ` : ''}lines {hit.start_line}–{hit.end_line}
            <PageLink hit={hit} />
          </p>
        </div>
        <div className="score">
          <meter min={0} max={best} value={hit.score} aria-label="Score" />
          <span className="number">{hit.score.toFixed(4)}</span>
        </div>
      </header>
      <p className="why">
        <Reason name="Words" rank={why.fulltext_rank} value={why.fulltext_score} unit="BM25" />
        <Reason name="Vectors" rank={why.vector_rank} value={why.similarity} unit="cosine" />
        {otherPlace === undefined ? null : (
          <State
            value="quiet"
            label={otherPlace === 0 ? 'not in the other search' : `place ${otherPlace} in the other`}
          />
        )}
      </p>
      {around ? (
        <Around hit={hit} />
      ) : (
        <Scroll ref={text} label={`Text of hit ${place}`} className="hit-text">
          <MarkdownText text={hit.content} />
        </Scroll>
      )}
      <div>
        <Button kind="quiet" aria-expanded={around} onClick={() => setAround(!around)}>
          {around ? 'The chunk alone' : 'With the lines around it'}
        </Button>
      </div>
    </li>
  );
}

const linesAround = 12;

/** The chunk, with the lines before and after it. */
function Around({ hit }: { hit: SearchHit }) {
  const from = Math.max(1, hit.start_line - linesAround);
  const lines = useLoad(['around', hit.id], async () => {
    const query = { offset: from, limit: hit.end_line + linesAround - from + 1, unit: 'lines' as const };
    const path = { document: hit.document };
    const { content } = await call('GET /api/v1/knowledge_documents/{document}/content', { path, query });
    return content.split('\n');
  });
  return (
    <Shown loaded={lines}>
      {(all) => {
        const start = hit.start_line - from;
        const end = hit.end_line - from + 1;
        return (
          <>
            <div className="neighbour">
              <MarkdownText text={all.slice(0, start).join('\n')} />
            </div>
            <div className="chunk-itself">
              <MarkdownText text={all.slice(start, end).join('\n')} />
            </div>
            <div className="neighbour">
              <MarkdownText text={all.slice(end).join('\n')} />
            </div>
          </>
        );
      }}
    </Shown>
  );
}

function Reason({
  name,
  rank,
  value,
  unit,
}: {
  name: string;
  rank: number | undefined;
  value: number | undefined;
  unit: string;
}) {
  if (rank === undefined) return <State value="quiet" label={`${name}: no match`} />;
  return (
    <State
      value="active"
      label={`${name}: rank ${rank}${value === undefined ? '' : `, ${unit} ${value.toFixed(3)}`}`}
    />
  );
}

const highlightName = 'search-term';

/** Marks the words of the query in the text. The terms are stems, so words that begin with a stem are marked. */
function useHighlights(host: RefObject<HTMLDivElement | null>, terms: string[], hit: string): void {
  const stems = terms.join(' ');
  // biome-ignore lint/correctness/useExhaustiveDependencies: the hit changes the text
  useEffect(() => {
    if (!host.current || stems === '' || !('highlights' in CSS)) return;
    const words = stems.split(' ').map((stem) => stem.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.join('|')})[\\p{L}\\p{N}]*`, 'giu');
    const highlight = CSS.highlights.get(highlightName) ?? new Highlight();
    CSS.highlights.set(highlightName, highlight);
    const ranges: Range[] = [];
    const walker = document.createTreeWalker(host.current, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      for (const match of (node.nodeValue ?? '').matchAll(pattern)) {
        const range = document.createRange();
        range.setStart(node, match.index);
        range.setEnd(node, match.index + match[0].length);
        ranges.push(range);
        highlight.add(range);
      }
    }
    return () => {
      for (const range of ranges) highlight.delete(range);
    };
  }, [host, stems, hit]);
}

/** Leads to the passage on the web page that it comes from. */
function PageLink({ hit: { source_url, fragment } }: { hit: SearchHit }) {
  if (source_url === undefined) return null;
  return (
    <>
      {' · '}
      <a
        href={fragment === undefined ? source_url : `${source_url}#${fragment}`}
        target="_blank"
        rel="noreferrer noopener"
      >
        {fragment === undefined ? 'page' : `#${fragment}`}
      </a>
    </>
  );
}
