import type { Static } from 'typebox';
import type { SearchHit } from '../../knowledge/search/results.ts';
import { AppError } from '../../lib/errors.ts';
import { formatId } from '../../lib/ids.ts';
import { presentHit, presentList } from '../present.ts';
import type { Annotation, InputItem, inputItemsQuery, OpenAiResponse, OutputItem, ResponseInput } from './schema.ts';
import type { ResponseRow } from './store.ts';

/** The files that documents come from, by the UUIDs of the documents. */
export type Files = ReadonlyMap<string, { fileId: string; filename: string }>;

export const responseId = (uuid: string) => formatId('response', uuid);
const suffixOf = (uuid: string) => responseId(uuid).slice('resp_'.length);

export function nameFile(row: SearchHit['row'], files: Files): { file_id: string; filename: string } {
  const { file_id, filename } = presentHit({ row, score: 0 }, files.get(row.documentId));
  return { file_id, filename };
}

/** A response before its text. */
export function presentDraft(id: string, given: ResponseInput, model: string, now: Date): OpenAiResponse {
  return {
    id: responseId(id),
    object: 'response',
    created_at: Math.floor(now.getTime() / 1_000),
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    instructions: given.instructions ?? null,
    max_output_tokens: given.max_output_tokens ?? null,
    model,
    output: [],
    parallel_tool_calls: given.parallel_tool_calls ?? true,
    previous_response_id: given.previous_response_id ?? null,
    store: given.store ?? true,
    temperature: given.temperature ?? null,
    text: { format: given.text?.format ?? { type: 'text' } },
    tool_choice: given.tool_choice ?? 'auto',
    tools: given.tools ?? [],
    top_p: given.top_p ?? null,
    truncation: 'disabled',
    background: false,
    usage: null,
    metadata: given.metadata ?? {},
  };
}

export function searchCallItem(id: string, query: string, found: { hits: SearchHit[]; files: Files } | undefined) {
  return {
    id: `fs_${suffixOf(id)}`,
    type: 'file_search_call' as const,
    status: 'completed' as const,
    queries: [query],
    results:
      found?.hits.map((hit) => {
        const { content, ...shown } = presentHit(hit, found.files.get(hit.row.documentId));
        return { ...shown, text: content[0]?.text ?? '' };
      }) ?? null,
  };
}

type MessageText = { status: 'in_progress' | 'completed' | 'incomplete'; text: string; annotations: Annotation[] };

export function messageItem(id: string, { status, text, annotations }: MessageText) {
  return {
    id: `msg_${suffixOf(id)}`,
    type: 'message' as const,
    status,
    role: 'assistant' as const,
    content: [{ type: 'output_text' as const, text, annotations, logprobs: [] }],
  };
}

/** The text of a response. */
export function textOf({ output }: OpenAiResponse): string {
  const isMessage = (item: OutputItem) => item.type === 'message';
  return output
    .flatMap((item) => (isMessage(item) && 'content' in item ? item.content : []))
    .map(({ text }) => text)
    .join('');
}

type InputQuery = Static<typeof inputItemsQuery>;

/** A page of the input of a response. Throws if `after` is not in it. */
export function pageOfInput(row: ResponseRow, { limit = 20, order = 'desc', after }: InputQuery) {
  const items = presentInput(row);
  if (order === 'desc') items.reverse();
  const start = after === undefined ? 0 : items.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && start === 0)
    throw new AppError('invalid_cursor', 'after: is not an id of this list', {
      fields: [{ field: 'after', message: 'is not an id of this list' }],
    });
  return presentList(items.slice(start, start + limit), items.length > start + limit);
}

function presentInput({ id, input }: ResponseRow): InputItem[] {
  return input.map(({ role, text }, i) => ({
    id: `msg_${suffixOf(id)}_${i}`,
    type: 'message',
    status: 'completed',
    role,
    content: [{ type: role === 'assistant' ? 'output_text' : 'input_text', text }],
  }));
}
