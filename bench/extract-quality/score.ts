/** How close a text is to its reference. Each measure is from 0 to 1. */
export type Scores = {
  f1: number;
  order: number | undefined;
  headings: number | undefined;
  tables: number | undefined;
};
export type Reference = { type: string; text?: string; with?: string[]; without?: string[] };

const tokensMax = 40_000;
const cjk = '\\u3040-\\u30ff\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\uac00-\\ud7af';
/** Each CJK character, otherwise a run of letters, digits and marks, like Python's \w. */
const tokenPattern = new RegExp(`[${cjk}]|(?:(?![${cjk}])[\\p{L}\\p{N}_])+`, 'gu');

/**
 * Multiset token F1; order as twice the longest common subsequence over both lengths; F1 of headings and of table
 * cells if the reference is Markdown that has them.
 */
export function scoreDocument(reference: Reference, markdown: string): Scores {
  const truth = reference.text ?? '';
  const expected = tokens(reference.type === 'markdown' ? stripMarkdown(truth) : truth);
  const given = tokens(stripMarkdown(markdown));
  const scores: Scores = {
    ...compareTokens(expected, given),
    headings: undefined,
    tables: undefined,
  };
  if (reference.type !== 'markdown') return scores;
  const headings = count(headingTexts(truth));
  if (headings.size > 0) scores.headings = f1(headings, count(headingTexts(markdown)));
  const cells = count(cellTexts(truth));
  if (cells.size > 0) scores.tables = f1(cells, count(cellTexts(markdown)));
  return scores;
}

/** The F1 of the multisets of tokens, and twice the longest common subsequence over both lengths. */
export function compareTokens(expected: string[], given: string[]): { f1: number; order: number } {
  return { f1: f1(count(expected), count(given)), order: order(expected, given) };
}

function tokens(text: string): string[] {
  return text.normalize('NFKC').toLowerCase().replaceAll('\u00ad', '').replaceAll('_', ' ').match(tokenPattern) ?? [];
}

/** Markdown without its syntax, link targets, pictures and HTML tags. */
export function stripMarkdown(markdown: string): string {
  let text = markdown
    .replaceAll('\r\n', '\n')
    .replace(/^---\n[\s\S]*?\n---\n/, '')
    .replaceAll(/<!--[\s\S]*?-->/g, ' ')
    .replaceAll(/^(?:```|~~~).*$/gm, '')
    .replaceAll(/!\[(?:[^\]\\]|\\.)*\]\((?:[^()\\]|\\.|\([^()]*\))*\)/g, ' ')
    .replaceAll(/!\[[^\]]*\]\[[^\]]*\]/g, ' ');
  for (let pass = 0; pass < 2; pass++)
    text = text.replaceAll(/\[((?:[^[\]\\]|\\.)*)\]\((?:[^()\\]|\\.|\([^()]*\))*\)/g, '$1');
  text = text
    .replaceAll(/\[([^[\]]*)\]\[[^\]]*\]/g, '$1')
    .replaceAll(/^\s*\[[^\]]+\]:\s+\S+.*$/gm, '')
    .replaceAll(/<(https?:\/\/[^>\s]+|mailto:[^>\s]+)>/g, '$1')
    .replaceAll(/<\/?[A-Za-z][^<>]{0,2000}>/g, ' ');
  return unescapeHtml(text)
    .replaceAll(/^\s{0,3}#{1,6}\s+/gm, '')
    .replaceAll(/^\s*(?:=+|-{2,}|\*\s?\*\s?\*|_{3,})\s*$/gm, '')
    .replaceAll(/^\s*\|?(?:\s*:?-{1,}:?\s*\|)+\s*:?-*:?\s*$/gm, '')
    .replaceAll('|', ' ')
    .replaceAll(/^\s*>+\s?/gm, '')
    .replaceAll(/^\s*[-*+]\s+(?:\[[ xX]\]\s+)?/gm, '')
    .replaceAll(/(?<!\\)(?:\*{1,3}|~~|`+)/g, '')
    .replaceAll(/(?<![\p{L}\p{N}_\\])_{1,3}(?=\S)|(?<=\S)_{1,3}(?![\p{L}\p{N}_])/gu, '')
    .replaceAll(/\\([\\`*_{}[\]()#+\-.!|>~<&$])/g, '$1');
}

function unescapeHtml(text: string): string {
  const named: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', nbsp: '\u00a0', apos: "'" };
  return text.replaceAll(/&(?:#(\d+)|#[xX]([0-9a-fA-F]+)|([a-z]+));/g, (all, decimal, hex, name) => {
    if (name !== undefined) return named[name] ?? all;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : all;
  });
}

function headingTexts(markdown: string): string[] {
  const text = markdown.replaceAll(/^(```|~~~)[\s\S]*?^\1\s*$/gm, '');
  const found = [
    ...text.matchAll(/^ {0,3}#{1,6}[ \t]+(.+?)\s*#*\s*$/gm),
    ...text.matchAll(/^(?!\s*[|>#-])(.+)\n(?:=+|-{3,})\s*$/gm),
    ...text.matchAll(/<h[1-6][^>]*>([\s\S]*?)<\/h[1-6]>/gi),
  ];
  return found.map((match) => normalise(match[1] ?? '')).filter((one) => one !== '');
}

function cellTexts(markdown: string): string[] {
  const cells: string[] = [];
  for (const line of markdown.split('\n')) {
    const row = line.trim();
    if (!row.startsWith('|') || row.split('|').length < 3) continue;
    if (/^\|?(?:\s*:?-+:?\s*\|)+\s*:?-*:?\s*$/.test(row)) continue;
    cells.push(...row.replaceAll(/^\|+|\|+$/g, '').split(/(?<!\\)\|/));
  }
  cells.push(...[...markdown.matchAll(/<t[dh][^>]*>([\s\S]*?)<\/t[dh]>/gi)].map((match) => match[1] ?? ''));
  return cells.map(normalise).filter((one) => one !== '');
}

function normalise(text: string): string {
  return tokens(stripMarkdown(text)).join(' ');
}

function count(items: string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1);
  return counts;
}

function f1(truth: Map<string, number>, given: Map<string, number>): number {
  const sum = (counts: Map<string, number>): number => [...counts.values()].reduce((total, one) => total + one, 0);
  const [expected, found] = [sum(truth), sum(given)];
  if (expected === 0 && found === 0) return 1;
  let common = 0;
  for (const [item, times] of truth) common += Math.min(times, given.get(item) ?? 0);
  return (2 * common) / (expected + found);
}

function order(truth: string[], given: string[]): number {
  if (truth.length === 0 && given.length === 0) return 1;
  const a = truth.slice(0, tokensMax);
  const b = truth.length > tokensMax ? given.slice(0, tokensMax * 1.3) : given;
  return (2 * longestCommonSubsequence(a, b)) / (a.length + b.length);
}

/** The length of the longest common subsequence, computed bit-parallel (Hyyrö 2004) over 32-bit words. */
function longestCommonSubsequence(a: string[], b: string[]): number {
  const words = Math.ceil(b.length / 32);
  const positions = new Map<string, Uint32Array>();
  b.forEach((token, index) => {
    let mask = positions.get(token);
    if (!mask) {
      mask = new Uint32Array(words);
      positions.set(token, mask);
    }
    mask[index >>> 5] = ((mask[index >>> 5] ?? 0) | (1 << (index & 31))) >>> 0;
  });
  const row = new Uint32Array(words).fill(0xffffffff);
  for (const token of a) {
    const mask = positions.get(token);
    if (!mask) continue;
    let carry = 0;
    for (let word = 0; word < words; word++) {
      const v = row[word] ?? 0;
      const u = (v & (mask[word] ?? 0)) >>> 0;
      const sum = v + u + carry;
      carry = sum > 0xffffffff ? 1 : 0;
      row[word] = ((sum >>> 0) | (v - u)) >>> 0;
    }
  }
  let length = 0;
  for (let index = 0; index < b.length; index++)
    if ((((row[index >>> 5] ?? 0) >>> (index & 31)) & 1) === 0) length += 1;
  return length;
}
