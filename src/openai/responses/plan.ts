import { fitPassages, type GenerateDeps } from '../../answers/generate.ts';
import { type Passage, readPassages } from '../../answers/passages.ts';
import { instruct } from '../../answers/prompt.ts';
import type { ChatMessage } from '../../content/models/llm/messages.ts';
import type { Knowledge } from '../../knowledge/domain.ts';
import type { SearchHit } from '../../knowledge/search/results.ts';
import type { Clock } from '../../lib/clock.ts';
import { invalidField } from '../../lib/errors.ts';
import { formatId, newUuid } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { nameMissing } from '../errors.ts';
import { readFilters } from '../filters.ts';
import type { OpenAiService } from '../service.ts';
import { type InputMessage, readInput } from './input.ts';
import { type Files, presentDraft, textOf } from './present.ts';
import type { OpenAiResponse, ResponseInput } from './schema.ts';
import type { ResponseRow } from './store.ts';
import { requireRoomFor, type StoredResponses } from './stored.ts';
import { tokensDefault } from './writing.ts';

export type ResponseDeps = GenerateDeps & { clock: Clock; knowledge: Knowledge; stores: OpenAiService };

const passagesDefault = 12;
const queryCharactersMax = 10_000;

/** What is known before the model is asked. */
export type Plan = {
  id: string;
  input: InputMessage[];
  previous: ResponseRow[];
  /** What was searched for; undefined without a search. */
  query: string | undefined;
  hits: SearchHit[];
  files: Files;
  passages: Passage[];
  /** What the response shows of the search. */
  shown: { hits: SearchHit[]; files: Files } | undefined;
  /** The documents that it rests on: those that the model reads here, or has read, and those that are shown. */
  documentIds: string[];
  messages: ChatMessage[];
  draft: OpenAiResponse;
};

/** Reads and checks what a response needs, and searches for its passages. */
export function createPlanner(deps: ResponseDeps, { readPrevious }: StoredResponses) {
  const { db, clock, llm, knowledge, stores } = deps;

  async function searchStores(caller: Caller, tool: FileSearch, query: string): Promise<SearchHit[]> {
    const sources: string[] = [];
    for (const [i, id] of tool.vector_store_ids.entries()) {
      const source = await nameMissing(`tools.0.vector_store_ids.${i}`, stores.getStore(caller, id));
      sources.push(formatId('source', source.id));
    }
    const { ranker, score_threshold: threshold = 0 } = tool.ranking_options ?? {};
    const { hits } = await knowledge.search.searchVisible(caller, {
      ...{ query, sources, max_results: tool.max_num_results ?? passagesDefault },
      ...(tool.filters == null ? {} : { filter: readFilters(tool.filters, 'tools.0.filters') }),
      ...(ranker === 'none' ? { rerank: false } : {}),
      ...(threshold > 0 ? { mode: 'vector', min_similarity: threshold } : {}),
    });
    return hits;
  }

  /** Everything that can be refused is refused here, before anything is sent. */
  return async function plan(caller: Caller, given: ResponseInput): Promise<Plan> {
    const model = given.model ?? undefined;
    await llm.requireUsable(caller, model);
    const input = readInput(given.input);
    const previous = given.previous_response_id == null ? [] : await readPrevious(caller, given.previous_response_id);
    if (given.store !== false) await db.begin((tx) => requireRoomFor(tx, caller));
    const tool = given.tool_choice === 'none' ? undefined : given.tools?.[0];
    const query = tool && queryOf(input);
    const hits = tool === undefined || query === undefined ? [] : await searchStores(caller, tool, query);
    const documents = hits.map(({ row }) => row.documentId);
    const files: Files = await knowledge.attachments.filesOf(caller.appId, documents);
    const conversation = conversationOf(previous, input);
    const rules = rulesOf(given, input);
    const others = [...conversation, { role: 'system' as const, content: rules }];
    const room = { model, tokens: given.max_output_tokens ?? tokensDefault, others };
    const passages = await fitPassages(deps, caller, room, readPassages(hits));
    if (hits.length > 0 && passages.length === 0)
      throw invalidField('model', 'has a context that is too small for a passage');
    const own: ChatMessage[] = rules === '' ? [] : [{ role: 'system', content: rules }];
    const system = passages.length === 0 ? own : [instruct(passages, rules === '' ? undefined : rules)];
    const id = newUuid();
    const draft = presentDraft(id, given, model ?? llm.operator.default ?? '', clock.now());
    const shown = given.include?.includes('file_search_call.results') ? { hits, files } : undefined;
    const read = [...passages, ...(shown?.hits ?? [])].map(({ row }) => row.documentId);
    const documentIds = [...new Set([...read, ...previous.flatMap((row) => row.documentIds)])];
    const found = { query, hits, files, passages, shown, documentIds };
    return { ...{ id, input, previous, draft }, ...found, messages: [...system, ...conversation] };
  };
}

type FileSearch = NonNullable<ResponseInput['tools']>[number];

/** The last message of a user; undefined if it has no words. */
function queryOf(input: readonly InputMessage[]): string | undefined {
  const text = input.findLast(({ role }) => role === 'user')?.text ?? '';
  return text.slice(0, queryCharactersMax).toWellFormed().trim() || undefined;
}

/** What the model is told beside the conversation. */
function rulesOf({ instructions }: ResponseInput, input: readonly InputMessage[]): string {
  const own = input.filter(({ role }) => role === 'system' || role === 'developer').map(({ text }) => text);
  return [instructions ?? '', ...own].filter((text) => text !== '').join('\n\n');
}

function conversationOf(previous: readonly ResponseRow[], input: readonly InputMessage[]): ChatMessage[] {
  const said = previous.flatMap((row): InputMessage[] => {
    const text = textOf(row.response);
    return [...row.input, ...(text === '' ? [] : [{ role: 'assistant' as const, text }])];
  });
  return [...said, ...input].flatMap(({ role, text }) =>
    role === 'user' || role === 'assistant' ? [{ role, content: text }] : [],
  );
}
