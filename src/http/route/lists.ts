import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import type { TSchema } from 'typebox';
import { freeWhenSent } from '../body/free-when-sent.ts';
import { appOf } from '../body/intake.ts';
import { turns } from '../limits/turns.ts';

/** The members of a list response other than its items. */
type Rest = Record<string, unknown>;

/** Shorter lists are sent as a whole. Longer ones are streamed chunk by chunk, as fast as the client reads. */
const wholeCharactersMax = 256 * 1024;

/**
 * Sends `{data: [items], …rest}`, or the items under another name. Holds only one chunk of text in memory at a time.
 * Large lists take turns, so a list of many megabytes does not block the process.
 */
export async function sendList(
  reply: FastifyReply,
  itemSchema: TSchema,
  items: AsyncIterable<unknown> | Iterable<unknown>,
  rest: Rest = {},
  name = 'data',
): Promise<FastifyReply> {
  const serialize = reply.compileSerializationSchema(itemSchema as Record<string, unknown>);
  const pieces = piecesOf(items, (item) => serialize(item as Record<string, unknown>), rest, name);
  const first = await pieces.next();
  reply.type('application/json; charset=utf-8');
  const text = first.value ?? '';
  if (text.length < wholeCharactersMax) return reply.send(text);
  freeWhenSent(reply.raw);
  return reply.send(
    Readable.from(inTurns(appOf(reply.request), text, pieces), { objectMode: false, highWaterMark: 1 }),
  );
}

/** The schema of the items if this is the schema of a list response. */
export function listItemSchema(response: TSchema | null | undefined): TSchema | undefined {
  const { data } = ((response as { properties?: Record<string, { items?: TSchema }> } | null)?.properties ?? {}) as {
    data?: { items?: TSchema };
  };
  return data?.items;
}

export async function* mapAsync<T, U>(items: AsyncIterable<T>, change: (item: T) => U): AsyncGenerator<U> {
  for await (const item of items) yield change(item);
}

async function* piecesOf(
  items: AsyncIterable<unknown> | Iterable<unknown>,
  serialize: (item: unknown) => string,
  rest: Rest,
  name: string,
): AsyncGenerator<string> {
  let text = `{"${name}":[`;
  let separator = '';
  for await (const group of groupsOf(items))
    for (const item of group) {
      text += separator + serialize(item);
      separator = ',';
      if (text.length < wholeCharactersMax) continue;
      yield text;
      text = '';
    }
  const members = JSON.stringify(rest).slice(1, -1);
  yield `${text}]${members === '' ? '' : `,${members}`}}`;
}

/** Items that are there already are not awaited one by one. */
async function* groupsOf(items: AsyncIterable<unknown> | Iterable<unknown>): AsyncGenerator<Iterable<unknown>> {
  if (Symbol.iterator in items) yield items;
  else for await (const item of items) yield [item];
}

/** Reads and serialises each chunk in a turn of the app. */
async function* inTurns(app: string, first: string, more: AsyncGenerator<string>): AsyncGenerator<Buffer> {
  yield Buffer.from(first);
  for (;;) {
    const { done, value } = await turns.run(
      app,
      () => more.next(),
      (piece) => piece.value?.length ?? 0,
    );
    if (done) return;
    yield Buffer.from(value);
  }
}
