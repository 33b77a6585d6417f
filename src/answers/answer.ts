import type { Static } from 'typebox';
import type { Knowledge } from '../knowledge/domain.ts';
import { invalidField } from '../lib/errors.ts';
import type { Caller } from '../tenancy/caller.ts';
import { withBoxes } from './boxes.ts';
import { fitPassages, type GenerateDeps, generateChecked, type Written } from './generate.ts';
import {
  type CheckedSentence,
  checkSentence,
  isUnsupported,
  type Passage,
  presentPassage,
  presentQuote,
  readPassages,
} from './passages.ts';
import { instruct } from './prompt.ts';
import type { answerCreateSchema, answerSchema, answerSentenceSchema } from './schema.ts';

export type AnswerDeps = GenerateDeps & { knowledge: Knowledge };
type Input = Static<typeof answerCreateSchema>;
export type Answer = Static<typeof answerSchema>;
type Sentence = Static<typeof answerSentenceSchema>;

/** What a reader of a stream receives before the whole answer. */
type AnswerEvent = { event: 'delta'; data: { text: string } } | { event: 'sentence'; data: Sentence };

/** Who receives an answer. */
type AnswerReader = {
  /** Aborted when nobody waits for the answer any longer. */
  signal: AbortSignal;
  /** Called with the documents that the answer is written from. */
  onFound(documentIds: readonly string[]): void;
  send(event: AnswerEvent): Promise<void>;
};

const passagesDefault = 12;
const extractsMax = 5;
const tokensDefault = 1_024;

/** Finds passages, has a model write from them, and checks what it writes. Without a model, returns passages. */
export async function answer(deps: AnswerDeps, caller: Caller, input: Input, reader: AnswerReader): Promise<Answer> {
  const written = await write(deps, caller, input, reader);
  if (input.boxes !== true) return written;
  const quotes = written.sentences.flatMap((sentence) => sentence.quotes);
  const placed = await withBoxes(deps.knowledge, caller, quotes, reader.signal);
  return {
    ...written,
    sentences: written.sentences.map((sentence) => ({
      ...sentence,
      quotes: placed.splice(0, sentence.quotes.length),
    })),
  };
}

async function write(deps: AnswerDeps, caller: Caller, input: Input, reader: AnswerReader): Promise<Answer> {
  const { llm } = deps;
  const hasModel = input.model !== undefined || llm.operator.default !== undefined;
  if (hasModel) await llm.requireUsable(caller, input.model);
  const found = await retrieve(deps.knowledge, caller, input);
  const draft = new Draft(input.unsupported ?? 'mark', reader);
  reader.onFound(found.map(({ row }) => row.documentId));
  if (found.length === 0) return draft.finish('not_in_sources', found);
  if (!hasModel) return extract(found, draft);
  const tokens = input.max_output_tokens ?? tokensDefault;
  const question = { role: 'user' as const, content: input.query };
  const instructions = { role: 'system' as const, content: input.instructions ?? '' };
  const room = { model: input.model, tokens, others: [question, instructions] };
  const passages = await fitPassages(deps, caller, room, found);
  if (passages.length === 0) throw invalidField('model', 'has a context that is too small for a passage');
  const messages = [instruct(passages, input.instructions), question];
  const written = await generateChecked(
    deps,
    caller,
    { model: input.model, messages, passages, tokens, temperature: 0 },
    draft,
    reader.signal,
  );
  return draft.finish(statusOf(written, draft), passages, written);
}

function statusOf({ outcome }: Written, draft: Draft): Answer['status'] {
  if (outcome === 'refused') return 'model_refused';
  if (outcome === 'not_in_sources') return 'not_in_sources';
  return outcome === 'ended' || draft.sentences.length === 0 ? 'unsupported' : 'answered';
}

async function retrieve({ search }: Knowledge, caller: Caller, input: Input): Promise<Passage[]> {
  const { query, sources, agent, max_results = passagesDefault } = input;
  if (sources !== undefined && agent !== undefined) throw invalidField('agent', 'cannot be given with sources');
  const { hits } =
    agent === undefined
      ? await search.searchVisible(caller, { query, max_results, ...(sources && { sources }) })
      : await search.searchAgent(caller, agent, { query, max_results });
  return readPassages(hits);
}

/** The best passages as the answer, each as a quotation of itself. */
async function extract(passages: readonly Passage[], draft: Draft): Promise<Answer> {
  for (const passage of passages.slice(0, extractsMax)) {
    const text = passage.content.trim();
    const quote = { text, start: 0, end: text.length };
    const sentence = { ...quote, quotes: [quote], citations: [passage.number] };
    const checked = await checkSentence([passage], { ...sentence, citations: [] });
    await draft.onSentence(
      { ...checked, citations: [passage.number] },
      draft.sentences.length === 0 ? text : `\n\n${text}`,
    );
  }
  return draft.finish('extracts', passages);
}

/** Collects the sentences that stay. */
class Draft {
  readonly sentences: Sentence[] = [];
  readonly #unsupported: 'mark' | 'remove' | 'refuse';
  readonly #reader: AnswerReader;
  readonly #cited = new Set<number>();
  #text = '';
  #removed = 0;

  constructor(unsupported: 'mark' | 'remove' | 'refuse', reader: AnswerReader) {
    this.#unsupported = unsupported;
    this.#reader = reader;
  }

  async onText(text: string): Promise<void> {
    if (this.#unsupported === 'mark') await this.#reader.send({ event: 'delta', data: { text } });
  }

  /** Returns true if there will be no answer. */
  async onSentence(checked: CheckedSentence, raw: string): Promise<boolean> {
    const unsupported = isUnsupported(checked);
    if (unsupported && this.#unsupported === 'refuse') return true;
    if (unsupported && this.#unsupported === 'remove') {
      this.#removed += 1;
      return false;
    }
    const gap = this.#text === '' && this.#removed > 0 ? raw.length - raw.trimStart().length : 0;
    const moved = this.#text.length - gap + (raw.length - checked.text.length) - checked.start;
    this.#text += raw.slice(gap);
    const quotes = checked.quotes.map((quote) => presentQuote(quote, moved));
    for (const number of checked.citations) this.#cited.add(number);
    for (const quote of quotes) if ('citation' in quote) this.#cited.add(quote.citation);
    const { text, start, end, status, citations } = checked;
    const sentence = { text, start: start + moved, end: end + moved, status, unsupported, citations, quotes };
    this.sentences.push(sentence);
    await this.#reader.send({ event: 'sentence', data: sentence });
    return false;
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
    };
  }
}
