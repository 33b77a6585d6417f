import { type ChatMessage, promptBytesWithin } from '../content/models/llm/messages.ts';
import { type Sentence, SentenceReader } from '../content/quotes/sentences.ts';
import type { Database } from '../db/database.ts';
import { AppError } from '../lib/errors.ts';
import type { CallOrigin } from '../llm/origin.ts';
import { type Generated, GenerationError, type Llm, type TokenBudget } from '../llm/service.ts';
import type { Caller } from '../tenancy/caller.ts';
import { holdTokens } from '../tenancy/quotas.ts';
import { type CheckedSentence, checkSentence, type Passage } from './passages.ts';
import { notInSources } from './prompt.ts';

export type GenerateDeps = {
  db: Database;
  llm: Llm;
  /** The context of models that state none. */
  contextTokens: number;
  /** The maximum duration of a request to a model. */
  requestMsMax: number;
};

type Request = {
  model: string | undefined;
  messages: readonly ChatMessage[];
  passages: readonly Passage[];
  tokens: number;
  temperature?: number | undefined;
  topP?: number | undefined;
  schema?: unknown;
};

/** Receives what a model writes. A call ends before the next one begins. */
type Listener = {
  /** Text as it arrives, unchecked. Never the mark for what is not in the sources. */
  onText?(text: string): void | Promise<void>;
  /** A sentence after its check. Returns true to end the request. */
  onSentence(sentence: CheckedSentence, raw: string): boolean | Promise<boolean>;
};

export type Written = {
  outcome: 'written' | 'not_in_sources' | 'ended' | 'refused';
  /** Of a request that was not ended. */
  generated?: Generated;
};

export const finishesOfRefusals = new Set(['content_filter', 'refusal']);

/** Thrown to end a request to a model whose text is not wanted further. */
class Ended extends Error {}

/**
 * Asks a model, and checks each sentence as it arrives. 503 if it is down or ends in the middle, 429 if its budget is
 * used up. `raw` of a sentence includes the white space before it.
 */
export async function generateChecked(
  { llm, requestMsMax }: GenerateDeps,
  caller: Caller,
  { passages, ...request }: Request,
  listener: Listener,
  signal: AbortSignal,
): Promise<Written> {
  const stop = new AbortController();
  const late = AbortSignal.timeout(requestMsMax);
  const writer = new Writer(passages, listener, () => stop.abort(new Ended()));
  try {
    const generated = await llm.generate(request, {
      ...{ lane: caller.appId, budget: budgetOf(caller), origin: originOf(caller) },
      signal: AbortSignal.any([signal, late, stop.signal]),
      onRequest: () => writer.restart(),
      onText: (text) => writer.push(text),
    });
    if (finishesOfRefusals.has(generated.finish_reason)) return { generated, outcome: 'refused' };
    await writer.end();
    if (writer.isEnded) return { generated, outcome: 'ended' };
    return { generated, outcome: writer.isNotInSources ? 'not_in_sources' : 'written' };
  } catch (error) {
    // What was written before is passed on first; a failure there is thrown.
    await writer.settle();
    if (error instanceof Ended) return { outcome: 'ended' };
    if (error === late.reason)
      throw unavailable('llm_timeout', `The language model took longer than ${requestMsMax / 1_000} seconds.`);
    if (error instanceof GenerationError) throw unavailable(error.code, error.message);
    throw error;
  }
}

function unavailable(reason: string, message: string): AppError {
  return new AppError('unavailable', message, { details: { reason } });
}

/** Splits what arrives into sentences, and passes them on one after the other. */
class Writer {
  readonly #passages: readonly Passage[];
  readonly #listener: Listener;
  readonly #stop: () => void;
  #reader = new SentenceReader();
  /** What arrived and may still become the mark that it is not in the sources. */
  #held = '';
  /** What was passed on as it arrived and is in no sentence yet, and where that begins in the whole text. */
  #untold = '';
  #told = 0;
  #hasPassedOn = false;
  #work: Promise<void> = Promise.resolve();
  isEnded = false;

  constructor(passages: readonly Passage[], listener: Listener, stop: () => void) {
    this.#passages = passages;
    this.#listener = listener;
    this.#stop = stop;
  }

  get isNotInSources(): boolean {
    return !this.#hasPassedOn && this.#held.trim().replace(/[.!]$/, '') === notInSources;
  }

  /** Another request begins. It can only follow one that wrote nothing. */
  restart(): void {
    if (!this.#hasPassedOn) {
      this.#reader = new SentenceReader();
      this.#held = '';
    }
  }

  push(text: string): void {
    this.#held += text;
    if (!this.#mayBeMark()) this.#forward((arrived) => this.#reader.push(arrived));
  }

  async end(): Promise<void> {
    if (this.isNotInSources) return;
    this.#forward((arrived) => [...this.#reader.push(arrived), ...this.#reader.end()]);
    await this.#work;
  }

  /** Waits until what arrived is passed on. */
  settle(): Promise<void> {
    return this.#work;
  }

  /** Whether the text so far may become the mark that it is not in the sources. */
  #mayBeMark(): boolean {
    if (this.#hasPassedOn || this.#held.length > markUnitsMax) return false;
    return notInSources.startsWith(this.#held.trim()) || this.isNotInSources;
  }

  #forward(read: (arrived: string) => Sentence[]): void {
    const arrived = this.#held;
    this.#held = '';
    this.#hasPassedOn = true;
    this.#untold += arrived;
    const raws = read(arrived).map((sentence) => {
      const units = sentence.end - this.#told;
      const raw = this.#untold.slice(0, units);
      this.#untold = this.#untold.slice(units);
      this.#told = sentence.end;
      return { sentence, raw };
    });
    this.#work = this.#work.then(async () => {
      if (this.isEnded) return;
      if (arrived !== '') await this.#listener.onText?.(arrived);
      for (const { sentence, raw } of raws) {
        if (this.isEnded) return;
        const checked = await checkSentence(this.#passages, sentence);
        if (!(await this.#listener.onSentence(checked, raw))) continue;
        this.isEnded = true;
        this.#stop();
      }
    });
    // A failure is thrown by `end`.
    this.#work.catch(() => this.#stop());
  }
}

/** A longer text is not the mark, whatever white space it begins with. */
const markUnitsMax = 1_000;

/** The passages that fit the context of the model beside the other messages and its text, best first. */
export async function fitPassages(
  { llm, contextTokens }: GenerateDeps,
  caller: Caller,
  request: { model: string | undefined; tokens: number; others: readonly ChatMessage[] },
  passages: readonly Passage[],
): Promise<Passage[]> {
  const context = (await llm.contextTokens(caller, request.model)) ?? contextTokens;
  const rulesBytes = 2_000;
  const used = request.others.reduce((sum, { content }) => sum + Buffer.byteLength(content), rulesBytes);
  let left = promptBytesWithin(context - request.tokens) - used;
  const fitting: Passage[] = [];
  for (const passage of passages) {
    left -= Buffer.byteLength(passage.content) + 300;
    if (left < 0) break;
    fitting.push(passage);
  }
  return fitting;
}

/** A killed process leaves its reservation, because it is unknown how much of it was used. */
export function budgetOf(caller: Caller): TokenBudget {
  return { reserve: (tx, tokens) => holdTokens(tx, caller, tokens) };
}

export function originOf(caller: Caller): CallOrigin {
  const { appId, sandboxId } = caller;
  return {
    ...{ appId, sandboxId },
    userId: caller.kind === 'user' ? caller.userId : null,
    agentId: caller.kind === 'agent' ? caller.agentId : null,
  };
}
