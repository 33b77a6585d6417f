import { hash } from 'node:crypto';
import type { ChatMessage } from '../../content/models/llm/messages.ts';
import { dropNulls, mergeResults } from './merge.ts';
import { type PieceSchema, pieceSchemaOf } from './piece-schema.ts';
import { divideText, type Piece } from './pieces.ts';
import { combineMessages, findRoom, pieceMessages, type Room, type Wanted } from './prompts.ts';
import type { JsonObject } from './schema-shape.ts';
import { locateValues, type Span } from './spans.ts';

/** Why an output has no data. `code` and `message` are for the caller. */
export class StructureError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'StructureError';
    this.code = code;
  }
}

type Question = { messages: ChatMessage[]; schema: JsonObject; tokens: number };

/** Questions and checks for one output. Each result is stored under its key, so a question is asked only once. */
export type StructureCalls = {
  /** Called when the number of pieces is known. */
  begin(pieces: number): Promise<void>;
  /** Returns a value that matches the question's schema. */
  ask(key: string, question: Question): Promise<unknown>;
  /** Returns how the value violates the schema, or undefined if it does not. */
  check(schema: JsonObject, value: unknown): Promise<{ paths: string[]; text: string } | undefined>;
};

const piecesMax = 1_000;
const dataBytesMax = 1024 * 1024;

export type Structured = { data: unknown; spans: Span[] };

/**
 * Extracts the data from a text: in one request if it fits the context, otherwise piece by piece. Throws
 * StructureError.
 */
export async function structureText(
  text: string,
  wanted: Wanted,
  contextTokens: number,
  calls: StructureCalls,
): Promise<Structured> {
  const forPieces = pieceSchemaOf(wanted.schema);
  const room = findRoom(wanted, forPieces.schema, contextTokens);
  if (room === undefined) throw new StructureError('schema_too_large', schemaTooLarge);
  const pieces = divideText(text, room.bytesMax);
  if (pieces.length === 0) pieces.push({ start: 0, end: 0 });
  if (pieces.length > piecesMax)
    throw new StructureError(
      'llm_input_too_large',
      `The text needs ${pieces.length} pieces to fit the language model's context; the limit is ${piecesMax}.`,
    );
  await calls.begin(pieces.length);
  const schema = pieces.length === 1 ? wanted.schema : forPieces.schema;
  const results = await Promise.all(
    pieces.map(({ start, end }, index) => {
      const messages = pieceMessages(wanted, text.slice(start, end), { number: index + 1, of: pieces.length });
      return calls.ask(keyOfPiece({ start, end }), { messages, schema, tokens: room.tokens });
    }),
  );
  const data = pieces.length === 1 ? results[0] : await combine(results, wanted, forPieces, room, calls);
  if (Buffer.byteLength(JSON.stringify(data)) > dataBytesMax)
    throw new StructureError('output_too_large', `The data has more than ${dataBytesMax} bytes.`);
  const reads = pieces.map((piece, index) => ({ piece, result: results[index] }));
  return { data, spans: await locateValues(data, text, reads) };
}

export const schemaTooLarge = 'leaves no room for a document in the context of the language model';

/** Stored with the results. A different division of the text gives different keys. */
function keyOfPiece({ start, end }: Piece): string {
  return `${pieceKeyPrefix}${start}-${end}`;
}

export const pieceKeyPrefix = 'piece/';

async function combine(
  results: readonly unknown[],
  wanted: Wanted,
  forPieces: PieceSchema,
  room: Room,
  calls: StructureCalls,
): Promise<unknown> {
  const found = results.filter((result) => result !== null);
  if (forPieces.merge === 'by_model') return combineByModel(found, wanted, forPieces, room, calls);
  const merged = mergeResults(results);
  const problem = await calls.check(wanted.schema, merged);
  if (problem === undefined) return merged;
  const known = dropNulls(merged, new Set(problem.paths));
  const left = await calls.check(wanted.schema, known);
  return left === undefined ? known : combineByModel([known], wanted, forPieces, room, calls, left.text);
}

/** Lets the model combine as many results as fit its context, repeatedly, until one is left. */
async function combineByModel(
  results: readonly unknown[],
  wanted: Wanted,
  forPieces: PieceSchema,
  room: Room,
  calls: StructureCalls,
  problem?: string,
): Promise<unknown> {
  const batches = batchResults(results, room.bytesMax);
  const isLast = batches.length <= 1;
  const fits = batches.every((batch) => Buffer.byteLength(batch.join('\n')) <= room.bytesMax);
  if (!fits || (!isLast && batches.length >= results.length))
    throw new StructureError(
      'llm_input_too_large',
      "The data from all pieces of the text does not fit the language model's context.",
    );
  const schema = isLast ? wanted.schema : forPieces.schema;
  const combined = await Promise.all(
    (isLast ? [batches[0] ?? []] : batches).map((batch) => {
      const messages = combineMessages(wanted, batch, problem);
      return calls.ask(keyOfMessages(messages), { messages, schema, tokens: room.tokens });
    }),
  );
  return isLast ? combined[0] : combineByModel(combined, wanted, forPieces, room, calls, problem);
}

/** Batches of consecutive results that fit together. A result that does not fit is a batch by itself. */
function batchResults(results: readonly unknown[], bytesMax: number): string[][] {
  const batches: string[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const json of results.map((result) => JSON.stringify(result))) {
    const size = Buffer.byteLength(json) + 1;
    bytes += size;
    if (bytes > bytesMax) {
      batches.push([]);
      bytes = size;
    }
    batches.at(-1)?.push(json);
  }
  return batches;
}

function keyOfMessages(messages: ChatMessage[]): string {
  return `combine/${hash('sha256', JSON.stringify(messages))}`;
}
