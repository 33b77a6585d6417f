import { invalidField } from '../../lib/errors.ts';
import { type InputItem, type ResponseInput, responseLimits } from './schema.ts';

/** A message of the input. */
export type InputMessage = Pick<InputItem, 'role'> & { text: string };

const roles: readonly string[] = ['user', 'assistant', 'system', 'developer'] satisfies InputItem['role'][];
/** Items of an earlier output that say nothing to the model. */
const skipped = new Set(['file_search_call', 'reasoning']);

/** The messages of a request. Throws 422 and names the member that is not supported. */
export function readInput(input: ResponseInput['input']): InputMessage[] {
  if (typeof input === 'string') return [{ role: 'user', text: input }];
  const messages = input.flatMap((item, i) => readItem(item, `input.${i}`));
  const characters = messages.reduce((sum, { text }) => sum + text.length, 0);
  if (characters > responseLimits.inputCharactersMax)
    throw invalidField('input', `has more than ${responseLimits.inputCharactersMax} characters`);
  if (!messages.some(({ role }) => role === 'user')) throw invalidField('input', 'has no message of the role user');
  return messages;
}

const memberNames = new Set(['type', 'role', 'content', 'id', 'status', 'phase']);

function readItem(item: Record<string, unknown>, at: string): InputMessage[] {
  const { type = 'message', role, content } = item;
  if (typeof type === 'string' && skipped.has(type)) return [];
  if (type !== 'message') throw invalidField(`${at}.type`, 'must be message');
  const unknown = Object.keys(item).find((name) => !memberNames.has(name));
  if (unknown !== undefined) throw invalidField(`${at}.${unknown}`, 'is not a known member of this request');
  if (typeof role !== 'string' || !roles.includes(role))
    throw invalidField(`${at}.role`, 'must be user, assistant, system or developer');
  return [{ role: role as InputItem['role'], text: readContent(content, `${at}.content`) }];
}

function readContent(content: unknown, at: string): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw invalidField(at, 'must be a text or a list of parts');
  return content.map((part, i) => readPart(part, `${at}.${i}`)).join('\n');
}

function readPart(part: unknown, at: string): string {
  const { type, text } = (part ?? {}) as { type?: unknown; text?: unknown };
  if (type !== 'input_text' && type !== 'output_text')
    throw invalidField(`${at}.type`, 'must be input_text or output_text: pictures and files are not supported');
  if (typeof text !== 'string') throw invalidField(`${at}.text`, 'must be a string');
  return text;
}
