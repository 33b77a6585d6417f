import { setImmediate as nextTurn } from 'node:timers/promises';
import { canonicalJson } from '../../lib/canonical-json.ts';
import { pointerStep } from './merge.ts';
import type { Piece } from './pieces.ts';
import { isObject } from './schema-shape.ts';
import { TextIndex, type TextRange } from './text-index.ts';

/** Where a value occurs in the text: its JSON Pointer and a range in UTF-16 units. */
export type Span = { path: string } & TextRange;

/** A piece of the text, and the data that the language model returned for it. */
type Read = { piece: Piece; result: unknown };

type Leaf = { path: string; value: string | number; found: TextRange[] };

const spansMax = 10_000;
/** The number of characters searched for the values of one output. Values after that have no spans. */
const searchedCharactersMax = 200_000_000;
const turnCharacters = 2_000_000;

/**
 * Finds the positions in the text of the data's strings and numbers, without the model: a value has a span only if
 * the text contains it. Of several positions, it uses the one nearest to the other values of the same object.
 */
export async function locateValues(data: unknown, text: string, reads: readonly Read[]): Promise<Span[]> {
  const sources = reads.map(({ piece, result }) => ({
    index: new TextIndex(text.slice(piece.start, piece.end), piece.start),
    values: new Set([...leavesOf(result)].map(({ value }) => canonicalJson(value))),
  }));
  let searched = 0;
  let sinceTurn = 0;
  const cache = new Map<string, TextRange[]>();

  /** The places in the pieces that returned the value, otherwise those in the first other piece that contains it. */
  async function find(value: string | number): Promise<TextRange[]> {
    const key = canonicalJson(value);
    const cached = cache.get(key);
    if (cached) return cached;
    const found: TextRange[] = [];
    for (const gave of [true, false]) {
      for (const { index, values } of sources) {
        if (values.has(key) !== gave || (!gave && found.length > 0)) continue;
        if (searched > searchedCharactersMax) break;
        searched += index.length;
        sinceTurn += index.length;
        if (sinceTurn > turnCharacters) {
          sinceTurn = 0;
          await nextTurn();
        }
        found.push(...index.find(value));
      }
    }
    cache.set(key, found);
    return found;
  }

  const objects = new Map<string, Leaf[]>();
  let count = 0;
  for (const { path, value } of leavesOf(data)) {
    count += 1;
    if (count > spansMax) break;
    const found = await find(value);
    const parent = path.slice(0, path.lastIndexOf('/'));
    const siblings = objects.get(parent);
    if (siblings) siblings.push({ path, value, found });
    else objects.set(parent, [{ path, value, found }]);
  }
  const spans = [...objects].flatMap(([parent, leaves]) => chooseNearest(leaves, isArrayAt(data, parent)));
  const order = new Map([...leavesOf(data)].map(({ path }, at) => [path, at]));
  return spans.sort((a, b) => (order.get(a.path) ?? 0) - (order.get(b.path) ?? 0));
}

/** The strings and numbers of a value in order, with their JSON Pointers. */
function* leavesOf(value: unknown, path = ''): Generator<{ path: string; value: string | number }> {
  if (typeof value === 'string' || typeof value === 'number') yield { path, value };
  else if (Array.isArray(value)) for (const [at, item] of value.entries()) yield* leavesOf(item, `${path}/${at}`);
  else if (isObject(value))
    for (const [name, member] of Object.entries(value)) yield* leavesOf(member, `${path}/${pointerStep(name)}`);
}

/** Starts with the values that have the fewest places: they locate the object. */
function chooseNearest(leaves: readonly Leaf[], areItems: boolean): Span[] {
  const anchors: TextRange[] = [];
  const chosen: Span[] = [];
  const sorted = leaves.filter(({ found }) => found.length > 0).sort((a, b) => a.found.length - b.found.length);
  for (const { path, found } of sorted) {
    const [first] = found;
    if (first === undefined) continue;
    const range = areItems || anchors.length === 0 ? first : nearest(found, anchors);
    if (anchors.length < anchorsMax) anchors.push(range);
    chosen.push({ path, start: range.start, end: range.end });
  }
  return chosen;
}

/** The number of values whose places locate the other values. */
const anchorsMax = 32;

/** The range with the least text between it and one of the anchors. */
function nearest(ranges: readonly TextRange[], anchors: readonly TextRange[]): TextRange {
  const gap = (range: TextRange) =>
    Math.min(...anchors.map((anchor) => Math.max(range.start - anchor.end, anchor.start - range.end)));
  return ranges.reduce((best, range) => (gap(range) < gap(best) ? range : best));
}

function isArrayAt(data: unknown, pointer: string): boolean {
  let value = data;
  for (const step of pointer.split('/').slice(1)) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    value = (value as Record<string, unknown> | undefined)?.[name];
  }
  return Array.isArray(value);
}
