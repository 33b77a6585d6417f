import { createHash } from 'node:crypto';
import { stringify } from 'yaml';

/*
 * Renders the part of Helm's template language that the chart uses, so that tests can check it without Helm. It throws
 * at whatever it does not know.
 */
export type Values = Record<string, unknown>;
type Action = { words: string };
type Node =
  | { kind: 'text'; text: string }
  | { kind: 'show'; words: string }
  | { kind: 'set'; name: string; words: string }
  | { kind: 'if'; words: string; body: Node[]; otherwise: Node[] }
  | { kind: 'with'; words: string; body: Node[]; otherwise: Node[] }
  | { kind: 'range'; name: string | undefined; words: string; body: Node[]; otherwise: Node[] };
type Scope = { dot: unknown; root: unknown; variables: Map<string, unknown> };
type Token = string | Action;

export class ChartTemplates {
  readonly #named = new Map<string, Node[]>();
  readonly #readFile: (path: string) => string;

  constructor(readFile: (path: string) => string) {
    this.#readFile = readFile;
  }

  /** Reads a template; the templates that it defines can then be included in any. */
  parse(text: string): Node[] {
    const tokens = split(text);
    const nodes = this.#parseBlock(tokens);
    if (tokens.length > 0) throw new Error(`{{ ${(tokens[0] as Action).words} }} has no beginning.`);
    return nodes;
  }

  render(nodes: Node[], values: Values): string {
    return this.#render(nodes, { dot: values, root: values, variables: new Map() });
  }

  #parseBlock(tokens: Token[]): Node[] {
    const nodes: Node[] = [];
    for (let token = tokens[0]; token !== undefined; token = tokens[0]) {
      if (typeof token === 'string') {
        nodes.push({ kind: 'text', text: token });
        tokens.shift();
        continue;
      }
      const { words } = token;
      if (words === 'end' || words === 'else') return nodes;
      tokens.shift();
      if (words.startsWith('/*')) continue;
      const [, keyword = '', rest = ''] = /^(if|with|range|define)\s+(.*)$/s.exec(words) ?? [];
      if (keyword === '') nodes.push(readStatement(words));
      else this.#parseKeyword(nodes, keyword, rest, tokens);
    }
    return nodes;
  }

  #parseKeyword(nodes: Node[], keyword: string, rest: string, tokens: Token[]): void {
    const body = this.#parseBlock(tokens);
    let otherwise: Node[] = [];
    if (isAction(tokens[0], 'else')) {
      tokens.shift();
      otherwise = this.#parseBlock(tokens);
    }
    if (!isAction(tokens[0], 'end')) throw new Error(`{{ ${keyword} ${rest} }} has no end.`);
    tokens.shift();
    if (keyword === 'define') this.#named.set(JSON.parse(rest), body);
    else if (keyword === 'range') {
      const [, name, words = rest] = /^\$(\w+)\s*:=\s*(.*)$/s.exec(rest) ?? [];
      nodes.push({ kind: 'range', name, words, body, otherwise });
    } else nodes.push({ kind: keyword === 'if' ? 'if' : 'with', words: rest, body, otherwise });
  }

  #render(nodes: Node[], scope: Scope): string {
    return nodes.map((node) => this.#renderNode(node, scope)).join('');
  }

  #renderNode(node: Node, scope: Scope): string {
    if (node.kind === 'text') return node.text;
    const value = this.#evaluate(node.words, scope);
    if (node.kind === 'show') return format(value, node.words);
    if (node.kind === 'set') {
      scope.variables.set(node.name, value);
      return '';
    }
    const inner = (dot: unknown): Scope => ({ ...scope, dot, variables: new Map(scope.variables) });
    if (!isTrue(value)) return this.#render(node.otherwise, inner(scope.dot));
    if (node.kind === 'if') return this.#render(node.body, inner(scope.dot));
    if (node.kind === 'with') return this.#render(node.body, inner(value));
    return (value as unknown[])
      .map((item) => {
        const each = inner(item);
        if (node.name !== undefined) each.variables.set(node.name, item);
        return this.#render(node.body, each);
      })
      .join('');
  }

  /** Evaluates a pipeline: each command gets the result of the one before it as its last argument. */
  #evaluate(words: string, scope: Scope): unknown {
    const tokens = words.match(/"(?:[^"\\]|\\.)*"|\(|\)|\||[^\s()|]+/g) ?? [];
    const value = this.#pipeline(tokens, scope);
    if (tokens.length > 0) throw new Error(`{{ ${words} }} cannot be read.`);
    return value;
  }

  #pipeline(tokens: string[], scope: Scope): unknown {
    let value = this.#command(tokens, scope, []);
    while (tokens[0] === '|') {
      tokens.shift();
      value = this.#command(tokens, scope, [value]);
    }
    return value;
  }

  #command(tokens: string[], scope: Scope, last: unknown[]): unknown {
    const [first = ''] = tokens;
    if (!/^[a-z]\w*$/i.test(first) && first !== '.Files.Get') return this.#operand(tokens, scope);
    tokens.shift();
    const given: unknown[] = [];
    while (tokens.length > 0 && tokens[0] !== '|' && tokens[0] !== ')') given.push(this.#operand(tokens, scope));
    return this.#call(first, [...given, ...last]);
  }

  #operand(tokens: string[], scope: Scope): unknown {
    const token = tokens.shift() ?? '';
    if (token === '(') {
      const value = this.#pipeline(tokens, scope);
      if (tokens.shift() !== ')') throw new Error('A parenthesis is not closed.');
      return value;
    }
    if (token.startsWith('"')) return JSON.parse(token);
    if (/^\d+$/.test(token)) return Number(token);
    const [, variable, path = ''] = /^(\$\w*)?((?:\.\w+)*|\.)$/.exec(token) ?? [];
    if (variable === undefined && path === '') throw new Error(`${token} cannot be read.`);
    if (variable !== undefined && variable !== '$' && !scope.variables.has(variable.slice(1)))
      throw new Error(`${variable} is not set.`);
    let found =
      variable === undefined ? scope.dot : variable === '$' ? scope.root : scope.variables.get(variable.slice(1));
    for (const name of path.split('.').filter((each) => each !== '')) found = (found as Values | undefined)?.[name];
    return found;
  }

  #call(name: string, given: unknown[]): unknown {
    const [first, second] = given;
    switch (name) {
      case 'include': {
        const nodes = this.#named.get(String(first));
        if (nodes === undefined) throw new Error(`There is no template ${first}.`);
        return this.#render(nodes, { dot: second, root: second, variables: new Map() });
      }
      case '.Files.Get':
        return this.#readFile(String(first));
      case 'dict':
        return Object.fromEntries(given.flatMap((key, at) => (at % 2 === 0 ? [[key, given[at + 1]]] : [])));
      default:
        return callFunction(name, given);
    }
  }
}

function callFunction(name: string, given: unknown[]): unknown {
  const [first, second] = given;
  switch (name) {
    case 'list':
      return given;
    case 'toYaml':
      return stringify(first, { lineWidth: 0 }).trimEnd();
    case 'quote':
      return JSON.stringify(String(first));
    case 'toString':
      return String(first);
    case 'sha256sum':
      return createHash('sha256').update(String(first)).digest('hex');
    case 'indent':
    case 'nindent': {
      const text = String(second).replace(/^/gm, ' '.repeat(Number(first)));
      return name === 'nindent' ? `\n${text}` : text;
    }
    case 'default':
      return isTrue(second) ? second : first;
    case 'not':
      return !isTrue(first);
    case 'eq':
      return first === second;
    default:
      throw new Error(`The function ${name} is not known.`);
  }
}

/** Divides a template into texts and actions. A hyphen beside the braces removes the white space next to them. */
function split(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  for (const match of text.matchAll(/\{\{(-)?\s*(\/\*.*?\*\/|.*?)\s*(-)?\}\}/gs)) {
    const [whole, trimsLeft, words = '', trimsRight] = match;
    const before = text.slice(at, match.index);
    tokens.push(trimsLeft ? before.trimEnd() : before, { words });
    at = match.index + whole.length;
    if (trimsRight) at += text.slice(at).length - text.slice(at).trimStart().length;
  }
  tokens.push(text.slice(at));
  return tokens.filter((token) => token !== '');
}

function readStatement(words: string): Node {
  const [, name, value = ''] = /^\$(\w+)\s*:=\s*(.*)$/s.exec(words) ?? [];
  return name === undefined ? { kind: 'show', words } : { kind: 'set', name, words: value };
}

function isAction(token: Token | undefined, words: string): boolean {
  return typeof token === 'object' && token.words === words;
}

/** As in Go's templates: empty strings, lists and maps are false. */
function isTrue(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}

function format(value: unknown, words: string): string {
  if (value === undefined || value === null) throw new Error(`{{ ${words} }} has no value.`);
  return String(value);
}
