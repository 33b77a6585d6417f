import type jsonata from 'jsonata';
import { lazyPackage } from '../../lib/lazy-package.ts';
import { redactedText } from './secret-values.ts';

const parser = lazyPackage<typeof jsonata>('jsonata');

/**
 * Strings that contain `{{expression}}`. A string that is a single expression becomes its value, with its type;
 * otherwise each expression is replaced by its text.
 */
type Template = { parts: TemplatePart[]; whole: boolean };
type TemplatePart = { text: string } | { expression: string };

export class ExpressionSyntaxError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ExpressionSyntaxError';
  }
}

const expressionCharactersMax = 10_000;
/** A limit, because the time to parse a path grows with the square of its steps. */
const expressionDotsMax = 1_000;
export const expressionDeadlineMs = 100;
const cacheEntriesMax = 2_000;
const templates = new Map<string, Template>();
const parsedExpressions = new Set<string>();

/** Whether a string may contain an expression: a fast check for the most frequent case. */
export function hasExpression(text: string): boolean {
  return text.includes('{{');
}

/** Throws ExpressionSyntaxError if the text is not a JSONata expression. */
export function checkExpression(expression: string): void {
  if (parsedExpressions.has(expression)) return;
  if (expression.length > expressionCharactersMax)
    throw new ExpressionSyntaxError(`is longer than ${expressionCharactersMax} characters`);
  if (countDots(expression) > expressionDotsMax)
    throw new ExpressionSyntaxError(`has more than ${expressionDotsMax} dots`);
  if (expression.trim() === '') throw new ExpressionSyntaxError('is an empty expression');
  try {
    parser()(expression);
  } catch (error) {
    throw new ExpressionSyntaxError(`does not parse: ${parseProblem(error)} in "${shorten(expression)}"`);
  }
  if (parsedExpressions.size >= cacheEntriesMax) parsedExpressions.clear();
  parsedExpressions.add(expression);
}

function countDots(text: string): number {
  let dots = 0;
  for (let at = text.indexOf('.'); at >= 0; at = text.indexOf('.', at + 1)) dots += 1;
  return dots;
}

/** Splits a string into text and expressions. Throws ExpressionSyntaxError. */
export function parseTemplate(text: string): Template {
  const known = templates.get(text);
  if (known) return known;
  const parts: TemplatePart[] = [];
  let at = 0;
  while (at < text.length) {
    const open = text.indexOf('{{', at);
    if (open < 0) {
      parts.push({ text: text.slice(at) });
      break;
    }
    if (open > at) parts.push({ text: text.slice(at, open) });
    const end = endOfExpression(text, open + 2);
    parts.push({ expression: text.slice(open + 2, end).trim() });
    at = end + 2;
  }
  const first = parts[0];
  const template = { parts, whole: parts.length === 1 && first !== undefined && 'expression' in first };
  if (templates.size >= cacheEntriesMax) templates.clear();
  templates.set(text, template);
  return template;
}

/** An expression may contain `}}` (nested objects): it ends at the first `}}` before which it parses. */
function endOfExpression(text: string, start: number): number {
  let problem: unknown;
  let tries = 0;
  for (let end = text.indexOf('}}', start); end >= 0 && tries < 20; end = text.indexOf('}}', end + 1), tries++) {
    try {
      checkExpression(text.slice(start, end).trim());
      return end;
    } catch (error) {
      problem ??= error;
    }
  }
  throw problem ?? new ExpressionSyntaxError(`has {{ without }} in "${shorten(text)}"`);
}

/** The text of an expression's value within a longer string. */
function toText(value: unknown): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string') return value;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/**
 * Resolves every template in a value, at any depth. `evaluate` returns an expression's value.
 * Returns the resolved value and a copy for the journal, in which expressions that name `$secrets` are redacted.
 */
export async function resolveTemplates(
  value: unknown,
  evaluate: (expression: string) => Promise<unknown>,
): Promise<{ value: unknown; shown: unknown }> {
  if (typeof value === 'string') {
    if (!hasExpression(value)) return { value, shown: value };
    const template = parseTemplate(value);
    const resolved: unknown[] = [];
    const shown: unknown[] = [];
    for (const part of template.parts) {
      const partValue = 'text' in part ? part.text : ((await evaluate(part.expression)) ?? null);
      resolved.push(partValue);
      shown.push('expression' in part && referencesSecrets(part.expression) ? redactedText : partValue);
    }
    return template.whole
      ? { value: resolved[0], shown: shown[0] }
      : { value: resolved.map(toText).join(''), shown: shown.map(toText).join('') };
  }
  // A promise and a copy for each of 16,000 members would take 20 ms, and most values have no template.
  if (!containsExpression(value)) return { value, shown: value };
  if (Array.isArray(value)) {
    const items = [];
    for (const item of value) items.push(await resolveTemplates(item, evaluate));
    return { value: items.map((item) => item.value), shown: items.map((item) => item.shown) };
  }
  const resolved: [string, unknown][] = [];
  const shown: [string, unknown][] = [];
  for (const [name, member] of Object.entries(value)) {
    const result = await resolveTemplates(member, evaluate);
    resolved.push([name, result.value]);
    shown.push([name, result.shown]);
  }
  return { value: Object.fromEntries(resolved), shown: Object.fromEntries(shown) };
}

/** Whether a list or an object has a string with an expression, at any depth. */
function containsExpression(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some((member) =>
    typeof member === 'string' ? hasExpression(member) : containsExpression(member),
  );
}

export function referencesSecrets(expression: string): boolean {
  return /\$secrets\b/.test(expression);
}

const secretHeaders = new Set(['authorization', 'cookie', 'x-api-key', 'x-archastro-api-key', 'proxy-authorization']);

/** A node's resolved members as the journal shows them: without credentials in headers. */
export function redactHeaders(value: unknown, isHeaders = false): unknown {
  if (typeof value !== 'object' || value === null) return value;
  let shown = value;
  for (const [name, member] of Object.entries(value)) {
    const lower = name.toLowerCase();
    const isSecret = isHeaders && secretHeaders.has(lower);
    const shownMember = isSecret ? redactedText : redactHeaders(member, lower === 'headers');
    if (shownMember === member) continue;
    // The copy of a value of many members takes as long as the rest of this, so only what changes is copied.
    if (shown === value) shown = Array.isArray(value) ? [...value] : { ...value };
    Object.defineProperty(shown, name, { value: shownMember });
  }
  return shown;
}

function parseProblem(error: unknown): string {
  if (typeof error !== 'object' || error === null) return 'unknown problem';
  const message = 'message' in error && typeof error.message === 'string' ? error.message : 'unknown problem';
  const position = 'position' in error && typeof error.position === 'number' ? ` at character ${error.position}` : '';
  return `${message}${position}`;
}

function shorten(text: string): string {
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}
