import { type Alias, type Document, isAlias, isMap, isNode, isScalar, isSeq, Lexer, type YAMLMap } from 'yaml';
import { limits } from '../../lib/limits.ts';

/** A problem and its position in the text, counted in characters. */
type YamlProblem = { offset: number; message: string };
/** A value, and the number of values in it with all aliases resolved. */
type Read = { value: unknown; size: number };

/** The values that a file may have once its aliases are resolved: those of a request with the same automation. */
const valuesMax = 150_000;
const problemsMax = 100;
/** Words, marks and spaces of a text: the parser needs memory for each. */
const partsMax = 150_000;
/** What the lexer adds to the text: the start of a document, an empty scalar, an end that is missing. */
const controls = new Set(['\u{2}', '\u{1f}', '\u{18}']);
const opening = new Set(['[', '{', '-', '?']);

/**
 * The first reason why the parser would need more memory than an expression process has; undefined if there is none.
 * Splitting a text into its parts needs no memory for them.
 */
export function findYamlExcess(text: string): YamlProblem | undefined {
  let offset = 0;
  let parts = 0;
  let flowDepth = 0;
  let lineDepth = 0;
  for (const part of new Lexer().lex(text)) {
    if (controls.has(part)) continue;
    parts += 1;
    if (parts > partsMax) return { offset, message: `has more than ${partsMax} words, marks and spaces` };
    if (part === '[' || part === '{') flowDepth += 1;
    else if (part === ']' || part === '}') flowDepth -= 1;
    if (part.startsWith('\n') || part.startsWith('\r')) lineDepth = 0;
    else if (opening.has(part)) lineDepth += 1;
    if (flowDepth > limits.jsonDepthMax || (flowDepth <= 0 && lineDepth > limits.jsonDepthMax))
      return { offset, message: `is nested more than ${limits.jsonDepthMax} levels deep` };
    offset += part.length;
  }
  return undefined;
}

/**
 * Reads the value of a document in time proportional to its text. The parser's own functions take the square: its
 * check for keys that repeat, and its search for the anchor of each alias. An alias is read as the same object as its
 * anchor, so a text cannot grow; what would be endless, or huge once it is written out, is a problem.
 */
export function readYamlValue(document: Document): { value: unknown; problems: YamlProblem[] } {
  const problems: YamlProblem[] = [];
  const anchors = new Map<string, Read | 'open'>();
  const report = (node: unknown, message: string) => {
    if (problems.length < problemsMax) problems.push({ offset: isNode(node) ? (node.range?.[0] ?? 0) : 0, message });
  };

  function read(node: unknown, depth: number): Read {
    if (isAlias(node)) return readAlias(node);
    if (!isScalar(node) && !isSeq(node) && !isMap(node)) return { value: null, size: 1 };
    if (depth > limits.jsonDepthMax) {
      report(node, `is nested more than ${limits.jsonDepthMax} levels deep`);
      return { value: null, size: 1 };
    }
    if (node.anchor !== undefined) anchors.set(node.anchor, 'open');
    const result = isScalar(node)
      ? { value: node.value, size: 1 }
      : isMap(node)
        ? readMap(node, depth + 1)
        : readAll(node.items, depth + 1);
    if (node.anchor !== undefined) anchors.set(node.anchor, result);
    return result;
  }

  function readAlias(alias: Alias): Read {
    const anchor = anchors.get(alias.source);
    if (anchor !== undefined && anchor !== 'open') return anchor;
    const problem = anchor === undefined ? 'has no anchor before it' : 'is part of itself';
    report(alias, `*${alias.source} ${problem}`);
    return { value: null, size: 1 };
  }

  function readAll(items: unknown[], depth: number): Read & { value: unknown[] } {
    const value: unknown[] = [];
    let size = 1;
    for (const item of items) {
      const part = read(item, depth);
      value.push(part.value);
      if (size <= valuesMax && size + part.size > valuesMax)
        report(item, `makes a file of more than ${valuesMax} values`);
      size += part.size;
    }
    return { value, size };
  }

  function readMap({ items }: YAMLMap, depth: number): Read {
    const keys = new Set<string>();
    for (const { key } of items) {
      if (!isScalar(key)) {
        report(key, 'is not a text that can be a key');
        continue;
      }
      const name = String(key.value);
      if (keys.has(name)) report(key, `${name} is already a key of this map`);
      keys.add(name);
    }
    const { value, size } = readAll(
      items.map((pair) => pair.value),
      depth,
    );
    const names = items.map(({ key }) => (isScalar(key) ? String(key.value) : ''));
    return { value: Object.fromEntries(names.map((name, index) => [name, value[index]])), size };
  }

  return { value: read(document.contents, 0).value, problems };
}
