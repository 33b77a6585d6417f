import { useEffect, useRef } from 'react';
import { Scroll } from '../../ui/scroll.tsx';
import './data.css';

export type Span = { path: string; start: number; end: number };

/** Spans that do not overlap. The chosen one takes precedence. */
function withoutOverlaps(spans: readonly Span[], chosen: string | undefined): Span[] {
  const first = spans.find(({ path }) => path === chosen);
  const others = spans.filter((span) => span !== first).toSorted((a, b) => a.start - b.start || b.end - a.end);
  const kept: Span[] = [];
  for (const span of others) {
    const before = kept.at(-1);
    if (before !== undefined && span.start < before.end) continue;
    if (first !== undefined && span.start < first.end && first.start < span.end) continue;
    kept.push(span);
  }
  return first === undefined ? kept : [...kept, first].toSorted((a, b) => a.start - b.start);
}

/** A text with marked values. The chosen one is scrolled into view. */
export function MarkedText({
  text,
  spans,
  chosen,
  onChoose,
}: {
  text: string;
  spans: readonly Span[];
  chosen: string | undefined;
  onChoose: (path: string) => void;
}) {
  const mark = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it scrolls when another value is chosen
  useEffect(() => {
    mark.current?.scrollIntoView({ block: 'center' });
  }, [chosen]);
  let at = 0;
  const shown = withoutOverlaps(spans, chosen).map((span) => {
    const before = text.slice(at, span.start);
    at = span.end;
    return { ...span, before, marked: text.slice(span.start, span.end) };
  });
  return (
    <Scroll label="Text" className="code-box">
      <pre className="code">
        {shown.map(({ path, before, marked }) => (
          <span key={path}>
            {before}
            {/* biome-ignore lint/a11y/useKeyWithClickEvents: the list of values does the same with the keyboard */}
            <mark
              ref={path === chosen ? mark : null}
              className={path === chosen ? 'chosen' : undefined}
              title={path}
              onClick={() => onChoose(path)}
            >
              {marked}
            </mark>
          </span>
        ))}
        {text.slice(at)}
      </pre>
    </Scroll>
  );
}
