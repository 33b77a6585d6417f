import type { Static } from 'typebox';
import type { Knowledge } from '../knowledge/domain.ts';
import { invalidField } from '../lib/errors.ts';
import type { Caller } from '../tenancy/caller.ts';
import { withBoxes } from './boxes.ts';
import { type Answer, type AnswerEvent, Draft } from './draft.ts';
import { fitPassages, type GenerateDeps, generateChecked, type Written } from './generate.ts';
import { Judge } from './judge.ts';
import { checkSentence, type Passage, readPassages } from './passages.ts';
import { instruct } from './prompt.ts';
import type { answerCreateSchema } from './schema.ts';

export type AnswerDeps = GenerateDeps & { knowledge: Knowledge };
type Input = Static<typeof answerCreateSchema>;

export type { Answer } from './draft.ts';

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
  const draft = new Draft(input.unsupported ?? 'mark', (event) => reader.send(event));
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
  const request = { model: input.model, messages, passages, tokens, temperature: 0 };
  const written = await writeJudged(deps, caller, input.query, request, draft, reader.signal);
  return draft.finish(statusOf(written, draft), passages, written);
}

/** The text with its sentences, judged if the operator has a judge. */
async function writeJudged(
  deps: AnswerDeps,
  caller: Caller,
  query: string,
  request: Parameters<typeof generateChecked>[2],
  draft: Draft,
  signal: AbortSignal,
): Promise<Written> {
  if (deps.llm.operator.judge === undefined) return generateChecked(deps, caller, request, draft, signal);
  const ended = new AbortController();
  draft.judgeWith(new Judge(deps, caller, request.passages, AbortSignal.any([signal, ended.signal])), query);
  try {
    const written = await generateChecked(deps, caller, request, draft, signal);
    if (written.outcome === 'written') await draft.settle();
    return written;
  } finally {
    // Where there will be no text, no further verdicts are wanted.
    ended.abort();
    await draft.stop();
  }
}

function statusOf({ outcome }: Written, draft: Draft): Answer['status'] {
  if (outcome === 'refused') return 'model_refused';
  if (outcome === 'not_in_sources') return 'not_in_sources';
  return draft.isRefused || draft.sentences.length === 0 ? 'unsupported' : 'answered';
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
