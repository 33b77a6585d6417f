import { useMemo } from 'react';
import type { Components } from 'react-markdown';
import type { AnswerSentence } from '../../api/generated.ts';
import { MarkdownText } from '../../ui/markdown.tsx';
import { markSentences } from './mark-sentences.ts';

/** The text of an answer. Its citations lead to their passages, and what no passage supports is marked. */
export function AnswerText({
  text,
  sentences,
  onCitation,
}: {
  text: string;
  sentences: AnswerSentence[];
  /** Undefined while the passages have not arrived. */
  onCitation: ((number: number) => void) | undefined;
}) {
  const more = useMemo(() => {
    const components: Components = {
      button: ({ children, ...rest }) => {
        const number = Number((rest as Record<string, unknown>)['data-citation']);
        return (
          <button
            type="button"
            className="cite"
            aria-label={`Passage ${number}`}
            disabled={onCitation === undefined}
            onClick={() => onCitation?.(number)}
          >
            {children}
          </button>
        );
      },
    };
    return { plugins: [markSentences(sentences, onCitation !== undefined)], components };
  }, [sentences, onCitation]);
  return <MarkdownText text={text} more={more} />;
}
