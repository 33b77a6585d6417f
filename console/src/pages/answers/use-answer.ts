import { useEffect, useRef, useState } from 'react';
import { ApiError } from '../../api/client.ts';
import type { Answer, AnswerSentence, CreateAnswerRequest } from '../../api/generated.ts';
import { requestEvents } from '../../api/stream.ts';
import { asApiError } from '../../ui/query.ts';

/** What has arrived of an answer: its text so far, the sentences of it that are checked, and in the end all of it. */
export type Progress = { text: string; sentences: AnswerSentence[]; answer?: Answer };

type Event = { text: string } | AnswerSentence | Answer | { error: { code: string; message: string } };

/** Asks a question. The answer is shown while it is written. */
export function useAnswer() {
  const [progress, setProgress] = useState<Progress>();
  const [state, setState] = useState<{ busy: boolean; stopped?: boolean; error?: ApiError }>({ busy: false });
  const request = useRef<AbortController>(undefined);
  useEffect(() => () => request.current?.abort(), []);

  async function ask(body: CreateAnswerRequest): Promise<void> {
    request.current?.abort();
    const current = new AbortController();
    request.current = current;
    setProgress({ text: '', sentences: [] });
    setState({ busy: true });
    try {
      const onEvent = (data: Event, name: string) => {
        if (name === 'error') throw new ApiError(503, (data as { error: { code: string; message: string } }).error);
        setProgress((now) => (now ? advance(now, data, name) : now));
        return name === 'answer';
      };
      await requestEvents<Event>('POST /api/v1/answers', { ...body, stream: true }, onEvent, current.signal);
      setState({ busy: false });
    } catch (error) {
      if (request.current !== current) return;
      setState(current.signal.aborted ? { busy: false, stopped: true } : { busy: false, error: asApiError(error) });
    }
  }

  return { ...state, progress, ask, stop: () => request.current?.abort() };
}

function advance(now: Progress, data: Event, name: string): Progress {
  if (name === 'delta') return { ...now, text: now.text + (data as { text: string }).text };
  if (name === 'answer') {
    const answer = data as Answer;
    return { text: answer.text, sentences: answer.sentences, answer };
  }
  const sentence = data as AnswerSentence;
  return { text: withSentence(now.text, sentence), sentences: [...now.sentences, sentence] };
}

/** The text with a sentence. Only when unsupported ones are marked has it arrived before; `answer` has the exact gaps. */
function withSentence(text: string, { text: own, start }: AnswerSentence): string {
  const gap = start - text.length;
  return gap < 0 ? text : text + (gap === 1 ? ' ' : '\n'.repeat(gap)) + own;
}
