import { limits } from '../limits.ts';

export type TextProblem = { path: string; message: string };

/**
 * Finds what Postgres cannot hold or JSON cannot carry faithfully: U+0000, lone surrogates, numbers that overflow,
 * and nesting deeper than `jsonDepthMax`. Where `mayHoldNul` says so, U+0000 passes. Walks without recursion, so depth itself is harmless.
 */
export function findTextProblem(
  value: unknown,
  mayHoldNul: (path: string) => boolean = () => false,
): TextProblem | undefined {
  const stack: { value: unknown; path: string; depth: number }[] = [{ value, path: '', depth: 0 }];
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    const { path, depth } = item;
    if (typeof item.value === 'string') {
      const message = stringProblem(mayHoldNul(path) ? item.value.replaceAll('\0', '') : item.value);
      if (message) return { path, message };
    } else if (typeof item.value === 'number') {
      if (!Number.isFinite(item.value)) return { path, message: 'is a number out of range' };
    } else if (typeof item.value === 'object' && item.value !== null) {
      if (depth >= limits.jsonDepthMax) return { path, message: `is nested deeper than ${limits.jsonDepthMax} levels` };
      for (const [key, member] of Object.entries(item.value)) {
        const memberPath = path === '' ? key : `${path}.${key}`;
        const message = stringProblem(key);
        if (message) return { path: memberPath.replaceAll('\0', '\\u0000').toWellFormed(), message };
        stack.push({ value: member, path: memberPath, depth: depth + 1 });
      }
    }
  }
  return undefined;
}

/** Why this text cannot be stored, or undefined when it can. */
export function stringProblem(text: string): string | undefined {
  if (text.includes('\0')) return 'must not contain the character U+0000';
  if (!text.isWellFormed()) return 'must not contain a lone surrogate';
  return undefined;
}
