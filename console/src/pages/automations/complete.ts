import { isMap, isSeq, parseDocument } from 'yaml';
import { definitionWords, type Words } from './definition-words.ts';

/** What an editor offers at its cursor, in place of the text from `from` to `to`. */
type Offer = { from: number; to: number; options: { label: string; apply: string; info?: string }[] };
/** What a word of a definition means. */
type Explanation = { from: number; to: number; title: string; text: string };

type Line = { start: number; column: number; isItem: boolean; key: string | undefined; value: string };
type Place = { words: Words; siblings: Map<string, string> };

/**
 * What may be written at this place of a definition, in YAML or in JSON with a member on each line. A definition is
 * seldom whole while it is typed, so the place is found by lines and their indentation.
 */
export function completeAt(text: string, at: number): Offer | undefined {
  const before = text.slice(text.lastIndexOf('\n', at - 1) + 1, at);
  const path = /\$(nodes)?\.([\w-]*)$/.exec(before);
  if (path) {
    const names = path[1] === undefined ? inputsOf(text) : nodesOf(text).map(({ id }) => id);
    return offer(
      at - (path[2]?.length ?? 0),
      at,
      names.map((label) => ({ label, apply: label })),
    );
  }
  const lines = readLines(text);
  const index = lines.findLastIndex(({ start }) => start <= at);
  const line = lines[index];
  if (line === undefined) return undefined;
  const isJson = /^\s*\{/.test(text);
  const value = /^\s*(?:- )?"?(\w+)"?\s*:\s+("?)([\w./-]*)$/.exec(before);
  if (value) {
    const [, key = '', quote = '', typed = ''] = value;
    const close = quote === '' && !isJson ? '' : '"';
    const quoted = (name: string) =>
      /^(\d+|true|false)$/.test(name) ? name : `${close && !quote ? '"' : ''}${name}${close}`;
    const values = valuesOf(key, placeOf(lines, index, line.column), text);
    return offer(
      at - typed.length,
      quote !== '' && text[at] === '"' ? at + 1 : at,
      values.map((label) => ({ label, apply: quoted(label), ...infoOf(outputOf(label)) })),
    );
  }
  const name = /^(\s*(?:- )?)("?)(\w*)$/.exec(before);
  if (!name) return undefined;
  const [, indent = '', quote = '', typed = ''] = name;
  const { words, siblings } = placeOf(lines, index, indent.length);
  const close = quote === '' && !isJson ? '' : '"';
  const open = quote === '' ? close : '';
  const free = Object.entries(words).filter(([label]) => label === typed || !siblings.has(label));
  return offer(
    at - typed.length,
    quote !== '' && text[at] === '"' ? at + 1 : at,
    free.map(([label, { about }]) => ({ label, apply: `${open}${label}${close}: `, ...infoOf(about) })),
  );
}

/** What the member or the kind of node at this place means. */
export function explainAt(text: string, at: number): Explanation | undefined {
  const lines = readLines(text);
  const index = lines.findLastIndex(({ start }) => start <= at);
  const line = lines[index];
  if (line?.key === undefined) return undefined;
  const { words } = placeOf(lines, index, line.column);
  const from = text.indexOf(line.key, line.start);
  if (at >= from && at <= from + line.key.length) {
    const word = words[line.key];
    if (word?.about === undefined && word?.required === undefined) return undefined;
    const note = word.required ? 'Required.' : 'Optional.';
    return { from, to: from + line.key.length, title: line.key, text: [word.about, note].filter(Boolean).join(' ') };
  }
  const kind = definitionWords.kinds[line.value];
  if (line.key !== 'kind' || kind === undefined) return undefined;
  const begin = text.indexOf(line.value, from + line.key.length);
  const members = Object.entries(kind.members).map(([name, { required }]) => (required ? name : `${name}?`));
  const parts = [
    members.length === 0 ? 'No members of its own.' : `Members: ${members.join(', ')}.`,
    kind.output === undefined ? '' : `Output: ${kind.output}.`,
  ];
  return { from: begin, to: begin + line.value.length, title: line.value, text: parts.filter(Boolean).join(' ') };
}

/** The nodes of a definition with the ranges of the text that define them. */
export function nodesOf(text: string): { id: string; from: number; to: number }[] {
  const nodes = parseDocument(text).getIn(['workflow', 'nodes'], true);
  if (!isSeq(nodes)) return [];
  return nodes.items.flatMap((node) => {
    const id = isMap(node) ? node.get('id') : undefined;
    if (!isMap(node) || typeof id !== 'string' || !node.range) return [];
    return [{ id, from: node.range[0], to: node.range[1] }];
  });
}

function inputsOf(text: string): string[] {
  const properties = parseDocument(text).getIn(['input_schema', 'properties']);
  return isMap(properties) ? properties.items.map(({ key }) => String(key)) : [];
}

const offer = (from: number, to: number, options: Offer['options']): Offer | undefined =>
  options.length === 0 ? undefined : { from, to, options };

function outputOf(kind: string): string | undefined {
  const output = definitionWords.kinds[kind]?.output;
  return output === undefined ? undefined : `Output: ${output}`;
}

const infoOf = (info: string | undefined) => (info === undefined ? {} : { info });

function readLines(text: string): Line[] {
  let start = 0;
  return text.split('\n').map((line) => {
    const [, indent = '', dash = '', key, value = ''] =
      /^(\s*)(-\s+)?(?:"?([\w-]+)"?\s*:(?:\s|$))?\s*"?([^",]*)/.exec(line) ?? [];
    const found = { start, column: indent.length + dash.length, isItem: dash !== '', key, value: value.trim() };
    start += line.length + 1;
    return line.trim() === '' ? { ...found, column: Number.POSITIVE_INFINITY } : found;
  });
}

/** The members that an object at this line and column may have, and those that it has. */
function placeOf(lines: Line[], index: number, column: number): Place {
  const siblings = new Map<string, string>();
  const add = ({ key, value }: Line) => key !== undefined && siblings.set(key, value);
  let top = index;
  for (; top >= 0; top--) {
    const line = lines[top];
    if (line === undefined || (top !== index && line.column < column)) break;
    if (line.column === column && top !== index) add(line);
    if (line.isItem && line.column === column) break;
  }
  for (const line of lines.slice(index + 1)) {
    if (line.column < column || (line.column === column && line.isItem)) break;
    if (line.column === column) add(line);
  }
  const own = lines[index];
  if (own?.key !== undefined) siblings.set(own.key, own.value);
  return { siblings, words: wordsOf(parentsOf(lines, index, column), siblings.get('kind')) };
}

/** The names of the members around, the nearest first. */
function parentsOf(lines: Line[], index: number, column: number): string[] {
  const parents: string[] = [];
  let left = column;
  for (let at = index - 1; at >= 0; at--) {
    const line = lines[at];
    if (line === undefined || line.column >= left) continue;
    left = line.column;
    if (line.key !== undefined) parents.push(line.key);
  }
  return parents;
}

function wordsOf([parent, ...outer]: string[], kind: string | undefined): Words {
  if (parent === undefined) return definitionWords.automation;
  if (parent === 'workflow' && outer.length === 0) return definitionWords.graph;
  const isNode = (parent === 'nodes' || parent === 'node') && outer.includes('workflow');
  return isNode ? { ...definitionWords.node, ...definitionWords.kinds[kind ?? '']?.members } : {};
}

function valuesOf(key: string, { words }: Place, text: string): string[] {
  const isNode = words.on_success !== undefined;
  if (key === 'kind' && isNode) return Object.keys(definitionWords.kinds);
  if (/^on_/.test(key) || key === 'start_node') return nodesOf(text).map(({ id }) => id);
  return words[key]?.values ?? [];
}
