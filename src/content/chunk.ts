import { FragmentReader, type HeadingFragments, TermReader } from './fragments.ts';
import { plainHeading } from './plain-heading.ts';

/**
 * Splits the Markdown text of a document into chunks for retrieval.
 *
 * The text is split into units (a sentence, a heading, a table row, a line of code), and the units are grouped into
 * blocks (paragraph, list item, table, fence). Chunks are filled with whole blocks; a block is split between units
 * only if it is too long by itself. A chunk is always one contiguous range of the text. Takes time linear in the
 * length of the text.
 */
export type Chunk = {
  /** Exactly the document's text from startByte to endByte. */
  text: string;
  /** The headings above the chunk's first line, outermost first, without the marks of Markdown. */
  headingPath: string[];
  /** The fragment of the term that the chunk's first line defines, or of the innermost of these headings that has one. */
  fragment?: string;
  /** UTF-8 bytes, 0-based, end exclusive. */
  startByte: number;
  endByte: number;
  /** Lines, 1-based, inclusive. */
  startLine: number;
  endLine: number;
};

type ChunkOptions = {
  /** Target size of chunks, in tokens as `estimateTokens` counts them. */
  targetTokens?: number;
  /** Maximum size of a chunk, exceeded only by one unbreakable cluster of characters. */
  maxTokens?: number;
  /** How many tokens at a chunk's end the next chunk repeats, if both are in one section. */
  overlapTokens?: number;
  /** The fragments of a web page's headings and terms. */
  fragments?: HeadingFragments | undefined;
};

const chunkDefaults = { targetTokens: 512, maxTokens: 768, overlapTokens: 64 } as const;

/**
 * Splits `text` into chunks in reading order. Text without visible characters has none.
 * Every visible character is in at least one chunk. A heading never ends a chunk unless the text ends there.
 */
export function chunkMarkdown(text: string, options: ChunkOptions = {}): Chunk[] {
  const sizes = sizesFrom(options);
  const units = readUnits(text, sizes.maxTokens, new FragmentReader(options.fragments));
  const blocks = joinBlocks(units, sizes.maxTokens);
  return packBlocks(blocks, units, sizes).map((range) => cutChunk(text, units, range));
}

type Sizes = { targetTokens: number; maxTokens: number; overlapTokens: number };

function sizesFrom(options: ChunkOptions): Sizes {
  const targetTokens = Math.max(1, options.targetTokens ?? chunkDefaults.targetTokens);
  return {
    targetTokens,
    maxTokens: Math.max(options.maxTokens ?? Math.ceil(targetTokens * 1.5), targetTokens),
    overlapTokens: Math.min(options.overlapTokens ?? chunkDefaults.overlapTokens, Math.floor(targetTokens / 2)),
  };
}

/**
 * Estimates the tokens that a model's tokenizer would produce: a word counts one per started group of six letters; a
 * symbol or a character of a script without spaces counts one. On prose, the result is within a fifth of common BPE
 * vocabularies.
 */
export function estimateTokens(text: string): number {
  let tokens = 0;
  let run = 0;
  for (let i = 0; i < text.length; i++) {
    const kind = characterKind(text.charCodeAt(i));
    if (kind === wordKind) {
      if (run === 0) tokens += 1;
      run = run === 5 ? 0 : run + 1;
    } else {
      run = 0;
      if (kind === symbolKind) tokens += 1;
    }
  }
  return tokens;
}

const spaceKind = 0;
const wordKind = 1;
const symbolKind = 2;

function characterKind(code: number): number {
  if (code <= 32 || code === 0xa0) return spaceKind;
  if (code < 128) {
    const letter = code | 32;
    return (letter >= 97 && letter <= 122) || (code >= 48 && code <= 57) ? wordKind : symbolKind;
  }
  // The second half of a surrogate pair is not counted, because the first half was.
  if (code >= 0xdc00 && code <= 0xdfff) return spaceKind;
  return code < 0x2000 ? wordKind : symbolKind;
}

/** The smallest part of a chunk. Offsets are UTF-16 units of the text. */
type Unit = {
  start: number;
  end: number;
  startByte: number;
  endByte: number;
  line: number;
  tokens: number;
  kind: 'heading' | 'fence' | 'table' | 'item' | 'text';
  /** Whether this is the first unit of its block. */
  opens: boolean;
  headingPath: string[];
  fragment: string | undefined;
};

const headingPattern = /^ {0,3}(#{1,6})(?:[ \t]+|$)/;
const fencePattern = /^\s{0,3}(`{3,}|~{3,})/;
const underlinePattern = /^ {0,3}(?:(=+)|-+)[ \t]*$/;
const itemPattern = /^\s*(?:[-*+]|\d{1,9}[.)])\s/;
const headingCharactersMax = 200;

function readUnits(text: string, maxTokens: number, fragments: FragmentReader): Unit[] {
  const units: Unit[] = [];
  const bytes = byteCounter(text);
  const terms = new TermReader(fragments);
  let path: { level: number; title: string; fragment: string | undefined }[] = [];
  let headingPath: string[] = [];
  let fragment: string | undefined;
  let fence: string | undefined;
  let underlineFollows = false;
  let before: Unit['kind'] | 'blank' = 'blank';
  let start = 0;
  const enterSection = (level: number, title: string): void => {
    const own = { level, title: plainHeading(title).slice(0, headingCharactersMax), fragment: fragments.next(title) };
    path = [...path.filter((above) => above.level < level), own];
    headingPath = path.map((above) => above.title).filter((shown) => shown !== '');
    fragment = path.findLast((above) => above.fragment !== undefined)?.fragment;
  };
  for (let line = 1; start < text.length; line++) {
    const end = endOfLine(text, start);
    const content = text.slice(start, end);
    let kind: Unit['kind'] | 'blank';
    let opens = true;
    if (fence !== undefined) {
      kind = content.trim() === '' ? 'blank' : 'fence';
      opens = false;
      if (content.trimStart().startsWith(fence) && content.trim() === fence[0]?.repeat(content.trim().length))
        fence = undefined;
    } else if (content.trim() === '') {
      kind = 'blank';
    } else if (underlineFollows) {
      kind = 'heading';
      opens = false;
      underlineFollows = false;
    } else {
      const opening = fencePattern.exec(content)?.[1];
      const heading = opening === undefined ? headingPattern.exec(content)?.[1] : undefined;
      if (opening !== undefined) {
        fence = opening;
        kind = 'fence';
      } else if (heading !== undefined) {
        kind = 'heading';
        const title = content
          .replace(headingPattern, '')
          .replace(/[ \t]#+[ \t]*$/, '')
          .trim();
        enterSection(heading.length, title);
      } else if (content.trimStart().startsWith('|')) {
        kind = 'table';
        opens = before !== 'table';
      } else if (itemPattern.test(content)) {
        kind = 'item';
      } else {
        kind = before === 'item' && /^\s/.test(content) ? 'item' : 'text';
        opens = before !== kind;
        const level = kind === 'text' && opens ? underlinedLevel(text, end + 1) : undefined;
        if (level !== undefined) {
          kind = 'heading';
          underlineFollows = true;
          enterSection(level, content.trim());
        }
      }
    }
    if (kind === 'item' && itemPattern.test(content)) terms.enter(content);
    else if (opens && kind !== 'blank') terms.leave(content.search(/\S/));
    if (kind !== 'blank') {
      for (const [from, to] of cutLine(content, kind, maxTokens)) {
        units.push({
          start: start + from,
          end: start + to,
          startByte: bytes(start + from),
          endByte: bytes(start + to),
          line,
          tokens: estimateTokens(text.slice(start + from, start + to)),
          kind,
          opens,
          headingPath,
          fragment: terms.fragment ?? fragment,
        });
        opens = false;
      }
    }
    if (fence === undefined || kind !== 'blank') before = kind;
    start = end + 1;
  }
  return units;
}

/** The level of a setext heading whose underline is the line at `start`. Only one-line headings are recognised. */
function underlinedLevel(text: string, start: number): 1 | 2 | undefined {
  const match = underlinePattern.exec(
    text.slice(start, Math.min(endOfLine(text, start), start + headingCharactersMax)),
  );
  return match ? (match[1] === undefined ? 2 : 1) : undefined;
}

/** The end of the line that begins at `start`: its line break or the end of the text. */
function endOfLine(text: string, start: number): number {
  const end = text.indexOf('\n', start);
  return end < 0 ? text.length : end;
}

/** Converts ascending offsets in UTF-16 units to byte offsets, reading each character once. */
function byteCounter(text: string): (offset: number) => number {
  let seen = 0;
  let count = 0;
  return (offset) => {
    if (offset > seen) {
      count += Buffer.byteLength(text.slice(seen, offset));
      seen = offset;
    }
    return count;
  };
}

/** The visible parts of one line: its sentences in prose, the whole line elsewhere. Long parts are split further. */
function cutLine(line: string, kind: Unit['kind'], maxTokens: number): [number, number][] {
  const visible = line.trimEnd().length;
  const pieces: [number, number][] = [];
  let from = 0;
  if (kind === 'text' || kind === 'item') {
    for (const match of line.slice(0, visible).matchAll(/(?:[.!?…]["'”’)\]]*\s+|[。！？])/gu)) {
      const to = match.index + match[0].length;
      if (/\S/.test(line.slice(from, to))) pieces.push([from, match.index + match[0].trimEnd().length]);
      from = to;
    }
  }
  if (from < visible) pieces.push([from, visible]);
  return pieces.flatMap(([start, end]) =>
    estimateTokens(line.slice(start, end)) <= maxTokens
      ? [[start, end] as [number, number]]
      : cutLong(line, start, end, maxTokens),
  );
}

/** Splits at a space in the second half of a piece if there is one, and never inside a surrogate pair. */
function cutLong(line: string, start: number, end: number, maxTokens: number): [number, number][] {
  const pieces: [number, number][] = [];
  let from = start;
  while (from < end) {
    let to = from;
    let space = -1;
    let tokens = 0;
    let run = 0;
    for (; to < end; to++) {
      const kind = characterKind(line.charCodeAt(to));
      const cost = kind === symbolKind || (kind === wordKind && run === 0) ? 1 : 0;
      if (tokens + cost > maxTokens) break;
      tokens += cost;
      run = kind === wordKind ? (run + 1) % 6 : 0;
      if (kind === spaceKind && line.charCodeAt(to) <= 32) space = to;
    }
    if (to < end) {
      if (space > from + (to - from) / 2) to = space;
      else if (isLowSurrogate(line.charCodeAt(to))) to += to - 1 > from ? -1 : 1;
    }
    pieces.push([from, to]);
    from = to;
    while (from < end && line.charCodeAt(from) <= 32) from += 1;
  }
  return pieces;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}

/** A range of units, `from` to `to` exclusive. */
type Range = { from: number; to: number };
type Block = Range & { tokens: number; heading: boolean };

/** Groups units that stay together. A block over `maxTokens` is split into its units. */
function joinBlocks(units: Unit[], maxTokens: number): Block[] {
  const blocks: Block[] = [];
  for (let from = 0; from < units.length; ) {
    let to = from + 1;
    let tokens = units[from]?.tokens ?? 0;
    while (to < units.length && units[to]?.opens === false) {
      tokens += units[to]?.tokens ?? 0;
      to += 1;
    }
    const heading = units[from]?.kind === 'heading';
    if (tokens <= maxTokens) blocks.push({ from, to, tokens, heading });
    else
      for (let one = from; one < to; one++)
        blocks.push({ from: one, to: one + 1, tokens: units[one]?.tokens ?? 0, heading });
    from = to;
  }
  return blocks;
}

/** Fills chunks block by block. A heading starts a new chunk unless the previous one would stay very small. */
function packBlocks(blocks: Block[], units: Unit[], sizes: Sizes): Range[] {
  const { targetTokens, maxTokens, overlapTokens } = sizes;
  const smallTokens = Math.floor(targetTokens / 4);
  const ranges: Range[] = [];
  let from = 0;
  let to = 0;
  let tokens = 0;
  let bodyTokens = 0;
  for (const block of blocks) {
    const newSection = block.heading && bodyTokens > smallTokens;
    const fits =
      tokens + block.tokens <= targetTokens || (tokens < targetTokens / 2 && tokens + block.tokens <= maxTokens);
    if (to > from && (newSection || !fits)) {
      const headingsFrom = block.heading ? to : startOfTrailingHeadings(units, from, to);
      if (headingsFrom > from) {
        ranges.push({ from, to: headingsFrom });
        const room = Math.min(overlapTokens, maxTokens - block.tokens - sumTokens(units, headingsFrom, to));
        from = block.heading || headingsFrom < to ? headingsFrom : startOfOverlap(units, from, to, room);
      }
      tokens = sumTokens(units, from, to);
      // Headings stay with the text below them unless both together exceed one chunk.
      if (tokens + block.tokens > maxTokens && to > from) {
        ranges.push({ from, to });
        from = to;
        tokens = 0;
      }
      bodyTokens = 0;
    }
    to = block.to;
    tokens += block.tokens;
    if (!block.heading) bodyTokens += block.tokens;
  }
  if (to > from) ranges.push({ from, to });
  return ranges;
}

/** The first of the headings that end the range, so that they can move to the text below them. */
function startOfTrailingHeadings(units: Unit[], from: number, to: number): number {
  let start = to;
  while (start > from && units[start - 1]?.kind === 'heading') start -= 1;
  return start;
}

/** Where the next chunk starts: it repeats whole units of the same section or definition, up to `room` tokens. */
function startOfOverlap(units: Unit[], from: number, to: number, room: number): number {
  const next = units[to];
  let start = to;
  let left = room;
  while (start - 1 > from) {
    const unit = units[start - 1];
    if (unit === undefined || unit.kind === 'heading' || unit.tokens > left) break;
    if (unit.headingPath !== next?.headingPath || unit.fragment !== next?.fragment) break;
    left -= unit.tokens;
    start -= 1;
  }
  return start;
}

function sumTokens(units: Unit[], from: number, to: number): number {
  let tokens = 0;
  for (let i = from; i < to; i++) tokens += units[i]?.tokens ?? 0;
  return tokens;
}

function cutChunk(text: string, units: Unit[], range: Range): Chunk {
  const first = units[range.from];
  const last = units[range.to - 1];
  if (first === undefined || last === undefined) throw new Error('A chunk has at least one unit.');
  let body = range.from;
  while (body < range.to - 1 && units[body]?.kind === 'heading') body += 1;
  const fragment = units[body]?.fragment;
  return {
    text: text.slice(first.start, last.end),
    headingPath: units[body]?.headingPath ?? [],
    ...(fragment === undefined ? {} : { fragment }),
    startByte: first.startByte,
    endByte: last.endByte,
    startLine: first.line,
    endLine: last.line,
  };
}
