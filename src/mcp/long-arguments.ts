import { findLongText, isStandIn, joinLongText, type LongText, shareLongText } from '../http/body/long-text.ts';
import { invalidField } from '../lib/errors.ts';

/** The members of a request that may be long. For tools and methods not in `forwarded`, they become plain strings again. */
export const longArgumentsAt = /^(?:\d+\.)?params\.arguments\.(?:data|text)$/;

/** Arguments that a tool forwards without reading them, as `data` of a request within the process. */
const forwarded: Record<string, readonly string[]> = {
  upload_file: ['data', 'text'],
  extract_file: ['data'],
  ingest: ['text'],
};
const members = ['data', 'text'];

type Message = { method?: unknown; params?: { name?: unknown; arguments?: Record<string, unknown> } };

/**
 * Replaces the long arguments of JSON-RPC messages by short placeholders, which requests within the process resolve.
 * Call `end` after the requests: it frees the arguments.
 */
export async function shareLongArguments(body: unknown, app: string): Promise<{ end(): void }> {
  const ends: (() => void)[] = [];
  const messages = (Array.isArray(body) ? body : [body]) as (Message | undefined)[];
  for (const message of messages) {
    const { name, arguments: given } = message?.params ?? {};
    if (given === undefined) continue;
    for (const member of members) {
      const text = findLongText(given, member);
      if (text === undefined) continue;
      const isForwarded = message?.method === 'tools/call' && forwarded[String(name)]?.includes(member) === true;
      if (!isForwarded) given[member] = await joinLongText(text, app);
      else {
        const { standIn, end } = shareLongText(name === 'upload_file' && member === 'text' ? encodeBase64(text) : text);
        given[member] = standIn;
        ends.push(end);
      }
    }
  }
  return {
    end() {
      for (const end of ends) end();
    },
  };
}

/** A text argument in base64; a placeholder is returned unchanged. */
export function textInBase64(text: string): string {
  return isStandIn(text) ? text : Buffer.from(text).toString('base64');
}

/** The UTF-8 of a text in base64. 422 on `text` for text that no tool accepts. */
function encodeBase64(text: LongText): LongText {
  return {
    *decode() {
      let left = Buffer.alloc(0);
      for (const piece of text.decode()) {
        if (!piece.isWellFormed()) throw invalidField('text', 'must not contain a lone surrogate');
        if (piece.includes('\0')) throw invalidField('text', 'must not contain the character U+0000');
        const bytes = Buffer.concat([left, Buffer.from(piece)]);
        const whole = bytes.length - (bytes.length % 3);
        left = bytes.subarray(whole);
        yield bytes.toString('base64', 0, whole);
      }
      yield left.toString('base64');
    },
  };
}
