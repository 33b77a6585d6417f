import { useState } from 'react';
import { Link } from 'wouter';
import { call } from '../../api/client.ts';
import type { SearchHit } from '../../api/generated.ts';
import { count, Empty, Field, fieldError, State } from '../../ui/basics.tsx';
import { Form } from '../../ui/dialog.tsx';
import { parseObject } from '../../ui/json.ts';
import { MarkdownText } from '../../ui/markdown.tsx';
import { useAction } from '../../ui/use-load.ts';

type Mode = 'hybrid' | 'fulltext' | 'vector';
type Explained = {
  chunks: number;
  average_length: number;
  terms: { term: string; document_frequency: number; idf: number }[];
  vectors_unavailable?: string;
};
type Why = { fulltext_rank?: number; fulltext_score?: number; vector_rank?: number; similarity?: number };
type Found = { hits: SearchHit[]; explain: Explained; mode: Mode };

/** A search as an agent sends it, with an explanation of each hit. */
export function SearchPlayground({ source }: { source: string }) {
  const [query, setQuery] = useState('');
  const [mode, setMode] = useState<Mode>('hybrid');
  const [filter, setFilter] = useState('');
  const [results, setResults] = useState('10');
  const [found, setFound] = useState<Found>();
  const search = useAction(async () => {
    const answer = await call('POST /api/v1/knowledge_sources/{source}/search', {
      path: { source },
      body: {
        query,
        mode,
        max_results: Number(results),
        explain: true,
        ...(filter.trim() === '' ? {} : { filter: parseObject(filter) }),
      },
    });
    setFound({ hits: answer.data, explain: answer.explain as Explained, mode });
  });
  return (
    <>
      <section className="card">
        <Form submit="Search" busy={search.busy} error={search.error} onSubmit={() => search.run()}>
          <Field label="Question or words" error={fieldError(search.error, 'query')}>
            {(id, described) => (
              <input
                id={id}
                {...described}
                type="search"
                required
                value={query}
                onChange={(event) => setQuery(event.target.value)}
              />
            )}
          </Field>
          <div className="row">
            <Field label="Mode" hint={modeHints[mode]}>
              {(id, described) => (
                <select id={id} {...described} value={mode} onChange={(event) => setMode(event.target.value as Mode)}>
                  <option value="hybrid">Both</option>
                  <option value="fulltext">Words</option>
                  <option value="vector">Vectors</option>
                </select>
              )}
            </Field>
            <Field label="Filter" hint='Such as {"year": {"gte": 2024}}' error={fieldError(search.error, 'filter')}>
              {(id, described) => (
                <input
                  id={id}
                  {...described}
                  className="code"
                  spellCheck={false}
                  placeholder="none"
                  value={filter}
                  onChange={(event) => setFilter(event.target.value)}
                />
              )}
            </Field>
            <Field label="Hits at most">
              {(id) => (
                <input
                  id={id}
                  type="number"
                  min={1}
                  max={100}
                  required
                  value={results}
                  onChange={(event) => setResults(event.target.value)}
                />
              )}
            </Field>
          </div>
        </Form>
      </section>
      {found ? <Results found={found} /> : null}
    </>
  );
}

const modeHints: Record<Mode, string> = {
  hybrid: 'Both rankings, fused by rank.',
  fulltext: 'BM25 ranking of the words.',
  vector: 'Cosine similarity of vectors.',
};

function Results({ found: { hits, explain } }: { found: Found }) {
  const best = Math.max(...hits.map((hit) => hit.score), Number.MIN_VALUE);
  return (
    <section aria-label="Hits" aria-live="polite">
      <div className="toolbar">
        <h2>{count(hits.length, 'hit')}</h2>
        <span className="faint">among {count(explain.chunks, 'chunk')}</span>
      </div>
      {explain.vectors_unavailable === undefined ? null : (
        <p className="notice">Without vectors, by words alone: {explain.vectors_unavailable}</p>
      )}
      {explain.terms.length === 0 ? null : (
        <p className="terms">
          <span className="faint">Words looked for:</span>
          {explain.terms.map(({ term, document_frequency, idf }) => (
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
            <Hit key={hit.id} hit={hit} place={at + 1} best={best} />
          ))}
        </ol>
      )}
    </section>
  );
}

function Hit({ hit, place, best }: { hit: SearchHit; place: number; best: number }) {
  const why = (hit.explain ?? {}) as Why;
  const headings = (hit.raw_content.heading_path ?? []) as string[];
  return (
    <li className="card hit">
      <header>
        <span className="place-number">{place}</span>
        <div className="grow">
          <Link href={`/knowledge/documents/${hit.document}?line=${hit.start_line}`}>
            {hit.title ?? hit.source_url ?? hit.document}
          </Link>
          <p className="faint">
            {headings.length > 0 ? `${headings.join(' › ')} · ` : ''}lines {hit.start_line}–{hit.end_line}
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
      </p>
      <MarkdownText text={hit.content} />
    </li>
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
