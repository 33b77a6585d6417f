import type { Static } from 'typebox';
import type { Written } from './generate.ts';
import { type Judge, judgedTogetherMax, type Verdicts } from './judge.ts';
import { type CheckedSentence, isUnsupported, type Passage, presentPassage, presentQuote } from './passages.ts';
import type { answerSchema, answerSentenceSchema } from './schema.ts';

export type Answer = Static<typeof answerSchema>;
type Sentence = Static<typeof answerSentenceSchema>;
type Unsupported = 'mark' | 'remove' | 'refuse';

/** What a reader of a stream receives before the whole answer. */
export type AnswerEvent = { event: 'delta'; data: { text: string } } | { event: 'sentence'; data: Sentence };

type Send = (event: AnswerEvent) => Promise<void>;
/** A sentence after the check of its quotes. `raw` includes the white space before it. */
type Waiting = { checked: CheckedSentence; raw: string };

const unjudged: Verdicts = new Map();

/** Collects the sentences of an answer that stay. */
export class Draft {
  readonly sentences: Sentence[] = [];
  readonly #unsupported: Unsupported;
  readonly #send: Send;
  readonly #cited = new Set<number>();
  #text = '';
  #removed = 0;
  #isRefused = false;
  /** Judges sentences, which wait for their verdicts while the model writes on. */
  #judge: { judge: Judge; question: string } | undefined;
  #waiting: Waiting[] = [];
  #work: Promise<void> = Promise.resolve();

  constructor(unsupported: Unsupported, send: Send) {
    this.#unsupported = unsupported;
    this.#send = send;
  }

  judgeWith(judge: Judge, question: string): void {
    this.#judge = { judge, question };
  }

  async onText(text: string): Promise<void> {
    if (this.#unsupported === 'mark') await this.#send({ event: 'delta', data: { text } });
  }

  /** Returns true if there will be no answer. */
  async onSentence(checked: CheckedSentence, raw: string): Promise<boolean> {
    this.#waiting.push({ checked, raw });
    if (this.#judge === undefined) await this.#add(this.#waiting.splice(0), unjudged);
    else if (this.#unsupported === 'refuse' && isUnsupported(checked)) this.#isRefused = true;
    else if (this.#waiting.length >= judgedTogetherMax) this.#judgeWaiting();
    return this.#isRefused;
  }

  /** Waits for the verdicts on all sentences. */
  async settle(): Promise<void> {
    this.#judgeWaiting();
    await this.#work;
  }

  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Waits until nothing is judged any longer, without the sentences that wait. */
  async stop(): Promise<void> {
    this.#waiting = [];
    await this.#work.catch(() => {});
  }

  #judgeWaiting(): void {
    const waiting = this.#waiting.splice(0);
    if (this.#judge === undefined || waiting.length === 0) return;
    const { judge, question } = this.#judge;
    this.#work = this.#work.then(async () => {
      if (this.#isRefused) return;
      const sentences = waiting.map(({ checked }) => checked);
      await this.#add(waiting, await judge.judge(question, this.#text, sentences));
    });
    // A failure is thrown by `settle`.
    this.#work.catch(() => {});
  }

  async #add(waiting: readonly Waiting[], verdicts: Verdicts): Promise<void> {
    for (const { checked, raw } of waiting) {
      if (this.#isRefused) return;
      await this.#addOne(checked, raw, verdicts.get(checked));
    }
  }

  async #addOne(checked: CheckedSentence, raw: string, verdict: boolean | undefined): Promise<void> {
    const unsupported = verdict === false || isUnsupported(checked);
    if (unsupported && this.#unsupported === 'refuse') {
      this.#isRefused = true;
      return;
    }
    if (unsupported && this.#unsupported === 'remove') {
      this.#removed += 1;
      return;
    }
    const gap = this.#text === '' && this.#removed > 0 ? raw.length - raw.trimStart().length : 0;
    const moved = this.#text.length - gap + (raw.length - checked.text.length) - checked.start;
    this.#text += raw.slice(gap);
    const quotes = checked.quotes.map((quote) => presentQuote(quote, moved));
    for (const number of checked.citations) this.#cited.add(number);
    for (const quote of quotes) if ('citation' in quote) this.#cited.add(quote.citation);
    const { text, start, end, citations } = checked;
    const sentence: Sentence = {
      ...{ text, start: start + moved, end: end + moved },
      status: verdict === true ? 'supported' : checked.status,
      unsupported,
      ...(verdict === undefined ? {} : { verdict: verdict ? 'supported' : 'not_supported' }),
      citations,
      quotes,
    };
    this.sentences.push(sentence);
    await this.#send({ event: 'sentence', data: sentence });
  }

  finish(status: Answer['status'], passages: readonly Passage[], written?: Written): Answer {
    const isWritten = status === 'answered' || status === 'extracts';
    const { generated } = written ?? {};
    const { prompt_tokens, completion_tokens, total_tokens } = generated?.usage ?? {};
    return {
      status,
      text: isWritten ? this.#text : '',
      sentences: isWritten ? this.sentences : [],
      citations: isWritten ? passages.filter(({ number }) => this.#cited.has(number)).map(presentPassage) : [],
      removed: this.#removed,
      incomplete: generated?.finish_reason === 'length',
      model: generated === undefined ? null : (generated.model_name ?? generated.model),
      usage:
        prompt_tokens === undefined || completion_tokens === undefined || total_tokens === undefined
          ? null
          : { prompt_tokens, completion_tokens, total_tokens },
      ...(this.#judge === undefined ? {} : { judge: this.#judge.judge.report() }),
    };
  }
}
