import { useEffect, useRef } from 'react';
import { Link } from 'wouter';
import type { AnswerSentence, Citation } from '../../api/generated.ts';
import { MarkdownText } from '../../ui/markdown.tsx';
import { Scroll } from '../../ui/scroll.tsx';
import { documentName } from '../knowledge/document-name.ts';
import { PdfPages } from './pdf-pages.tsx';
import { useMarkedPhrases } from './use-marked-phrases.ts';

type Quote = AnswerSentence['quotes'][number];

/** The passages that an answer cites. Those that are open show their text and, of a stored PDF, their page. */
export function Passages({
  citations,
  sentences,
  open,
  onToggle,
}: {
  citations: Citation[];
  sentences: AnswerSentence[];
  open: { numbers: ReadonlySet<number>; latest?: number };
  onToggle: (number: number) => void;
}) {
  return (
    <section className="stack" aria-label="Passages">
      <h2>{citations.length === 1 ? 'The passage' : 'The passages'}</h2>
      <ol className="passages">
        {citations.map((citation) => (
          <Passage
            key={citation.number}
            citation={citation}
            quotes={sentences.flatMap(({ quotes }) => quotes.filter((one) => one.citation === citation.number))}
            isOpen={open.numbers.has(citation.number)}
            isLatest={open.latest === citation.number}
            onToggle={() => onToggle(citation.number)}
          />
        ))}
      </ol>
    </section>
  );
}

function Passage({
  citation,
  quotes,
  isOpen,
  isLatest,
  onToggle,
}: {
  citation: Citation;
  quotes: Quote[];
  isOpen: boolean;
  isLatest: boolean;
  onToggle: () => void;
}) {
  const { number, document, title, source_url, heading_path, start_line, end_line, start_page, end_page } = citation;
  const item = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isLatest) item.current?.scrollIntoView({ block: 'nearest' });
  }, [isLatest]);
  const pages =
    start_page === undefined ? '' : start_page === end_page ? `page ${start_page}` : `pages ${start_page}–${end_page}`;
  const lines = start_line === end_line ? `line ${start_line}` : `lines ${start_line}–${end_line}`;
  return (
    <li ref={item} className="card passage">
      <button type="button" aria-expanded={isOpen} onClick={onToggle}>
        <span className="place-number">{number}</span>
        <span className="grow">
          <span className="passage-title">{documentName({ title, source_url }, document)}</span>
          <span className="faint">{[heading_path.join(' › '), pages || lines].filter(Boolean).join(' · ')}</span>
        </span>
      </button>
      {isOpen ? <PassageText citation={citation} quotes={quotes} /> : null}
    </li>
  );
}

function PassageText({ citation, quotes }: { citation: Citation; quotes: Quote[] }) {
  const { number, document, start_line, content } = citation;
  const text = useRef<HTMLDivElement>(null);
  const said = new Set(quotes.flatMap(({ places = [] }) => places.map((place) => place.text)));
  // An extract quotes the whole passage.
  const phrases = [...said].filter((one) => one.trim() !== content.trim());
  useMarkedPhrases(text, phrases);
  return (
    <div className="passage-text">
      <Scroll ref={text} label={`Text of passage ${number}`} className="hit-text">
        <MarkdownText text={content} />
      </Scroll>
      {quotes.map(({ text: quote, difference }) =>
        difference === undefined ? null : (
          <p key={quote} className="difference">
            <span className="faint">The answer changes the quote: </span>
            {difference.map(({ type, text: words }, at) => {
              const Words = type === 'same' ? 'span' : type === 'only_in_quote' ? 'del' : 'ins';
              // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text
              return <Words key={at}>{words} </Words>;
            })}
          </p>
        ),
      )}
      <p>
        <Link href={`/knowledge/documents/${document}?line=${start_line}`}>Open the document at line {start_line}</Link>
      </p>
      <PdfPages citation={citation} quotes={phrases} />
    </div>
  );
}
