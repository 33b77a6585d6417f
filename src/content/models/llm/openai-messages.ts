import type { Attachment, ChatMessage } from './messages.ts';

/** A message as chat completions have it. */
export function promptMessage({ role, content, attachments = [], toolCalls = [], resultOf }: ChatMessage) {
  if (resultOf !== undefined) return { role, tool_call_id: resultOf.id, content };
  if (toolCalls.length > 0)
    return { role, content: content === '' ? null : content, tool_calls: toolCalls.map(callOf) };
  if (attachments.length === 0) return { role, content };
  return { role, content: [{ type: 'text', text: content }, ...attachments.map(partOf)] };
}

function callOf({ id, name, arguments: given }: NonNullable<ChatMessage['toolCalls']>[number]) {
  return { id, type: 'function', function: { name, arguments: given } };
}

function partOf({ kind, mediaType, filename, base64 }: Attachment) {
  const data = `data:${mediaType};base64,${base64}`;
  if (kind === 'image') return { type: 'image_url', image_url: { url: data } };
  return { type: 'file', file: { filename, file_data: data } };
}
