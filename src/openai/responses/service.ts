import { fitPassages, type GenerateDeps } from '../../answers/generate.ts';
import { type Passage, readPassages } from '../../answers/passages.ts';
import { instruct } from '../../answers/prompt.ts';
import type { ChatMessage } from '../../content/models/llm/messages.ts';
import type { Knowledge } from '../../knowledge/domain.ts';
import type { SearchHit } from '../../knowledge/search/results.ts';
import type { Clock } from '../../lib/clock.ts';
import { found, invalidField } from '../../lib/errors.ts';
import { formatId, newUuid } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { fieldId, pathId, unknownReference } from '../../tenancy/references.ts';
import { requireRoom } from '../../tenancy/room.ts';
import { nameMissing } from '../errors.ts';
import { readFilters } from '../filters.ts';
import type { OpenAiService } from '../service.ts';
import type { ResponseEvents } from './events.ts';
import { type InputMessage, readInput } from './input.ts';
import { type Files, presentDraft, searchCallItem, textOf } from './present.ts';
import { type OpenAiResponse, type ResponseInput, responseLimits } from './schema.ts';
import * as store from './store.ts';
import { tokensDefault, Writing } from './writing.ts';

export type ResponseDeps = GenerateDeps & { clock: Clock; knowledge: Knowledge; stores: OpenAiService };

const passagesDefault = 12;
const queryCharactersMax = 10_000;
const dayMs = 24 * 3_600 * 1_000;

/** Whom a response is written for. */
type ResponseReader = {
  signal: AbortSignal;
  /** Called with the documents that the response rests on. */
  onFound(documentIds: readonly string[]): void;
  /** Undefined for a reader who waits for the whole response. */
  events: ResponseEvents | undefined;
};

/** What is known before the model is asked. */
type Plan = {
  id: string;
  input: InputMessage[];
  previous: store.ResponseRow[];
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

/** Responses of a model for OpenAI's clients, some of which rest on a search of vector stores. */
export function createResponseService(deps: ResponseDeps) {
  const { db, clock, llm, knowledge, stores } = deps;

  async function get(caller: Caller, id: string): Promise<store.ResponseRow> {
    const row = found(await store.findResponse(db, caller, pathId('response', id), clock.now()));
    return found((await seesAll(caller, [row])) ? row : undefined);
  }

  /** Whether the caller may still read what the responses were written from. */
  function seesAll(caller: Caller, rows: readonly store.ResponseRow[]): Promise<boolean> {
    return knowledge.documents.seesAll(caller, [...new Set(rows.flatMap(({ documentIds }) => documentIds))]);
  }

  /** The responses that one continues, the oldest first. */
  async function readPrevious(caller: Caller, text: string): Promise<store.ResponseRow[]> {
    const field = 'previous_response_id';
    const chain = await store.listChain(db, caller, fieldId('response', field, text), clock.now());
    const [oldest] = chain;
    if (oldest === undefined || !(await seesAll(caller, chain))) throw unknownReference(field);
    if (chain.length > responseLimits.previousMax)
      throw invalidField(field, `continues more than ${responseLimits.previousMax} responses`);
    if (oldest.previousId !== null) throw invalidField(field, 'continues a response that is no longer stored');
    return chain;
  }

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
  async function plan(caller: Caller, given: ResponseInput): Promise<Plan> {
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
  }

  async function requireRoomFor(tx: Parameters<typeof requireRoom>[0], caller: Caller): Promise<void> {
    const { appId, sandboxId } = caller;
    const refusal = 'Delete some, or send "store": false.';
    const all = { things: 'responses', max: responseLimits.storedMax, appId, sandboxId };
    const message = `There are already ${responseLimits.storedMax} stored responses. ${refusal}`;
    await requireRoom(tx, { ...all, message }, () => store.countResponses(tx, caller));
    if (caller.kind !== 'user') return;
    const own = { things: 'responses of a user', max: responseLimits.storedOfUserMax, appId, sandboxId };
    const ownMessage = `You already have ${responseLimits.storedOfUserMax} stored responses. ${refusal}`;
    await requireRoom(tx, { ...own, of: caller.userId, message: ownMessage }, () =>
      store.countResponses(tx, caller, caller.userId),
    );
  }

  async function keep(
    caller: Caller,
    { id, input, previous, documentIds }: Plan,
    response: OpenAiResponse,
  ): Promise<void> {
    const createdAt = clock.now();
    await db.begin(async (tx) => {
      await requireRoomFor(tx, caller);
      await store.insertResponse(tx, {
        ...{ appId: caller.appId, sandboxId: caller.sandboxId, id, input, response, createdAt },
        userId: caller.kind === 'user' ? caller.userId : null,
        previousId: previous.at(-1)?.id ?? null,
        documentIds,
        expiresAt: new Date(createdAt.getTime() + responseLimits.daysKept * dayMs),
      });
    });
  }

  return {
    get,

    /** Writes a response, and stores it unless the caller declines. */
    async create(caller: Caller, given: ResponseInput, reader: ResponseReader): Promise<OpenAiResponse> {
      const planned = await plan(caller, given);
      const { draft, shown, passages, query, documentIds } = planned;
      const { events } = reader;
      reader.onFound(documentIds);
      const call = query === undefined ? undefined : searchCallItem(planned.id, query, shown);
      await events?.begin(draft);
      if (call !== undefined) await events?.search(call);
      const writing = new Writing(planned, events);
      const asks = call === undefined || passages.length > 0;
      const written = asks ? await writing.run(deps, caller, given, reader.signal) : undefined;
      const response = await writing.finish(written, call);
      if (given.store !== false) await keep(caller, planned, response);
      await events?.finish(response);
      return response;
    },

    async remove(caller: Caller, id: string): Promise<string> {
      const row = await get(caller, id);
      found(await store.deleteResponse(db, caller, row.id));
      return row.id;
    },
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

function conversationOf(previous: readonly store.ResponseRow[], input: readonly InputMessage[]): ChatMessage[] {
  const said = previous.flatMap((row): InputMessage[] => {
    const text = textOf(row.response);
    return [...row.input, ...(text === '' ? [] : [{ role: 'assistant' as const, text }])];
  });
  return [...said, ...input].flatMap(({ role, text }) =>
    role === 'user' || role === 'assistant' ? [{ role, content: text }] : [],
  );
}
