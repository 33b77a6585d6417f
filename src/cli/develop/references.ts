import type { Values } from './kinds.ts';

type ReferenceKind = 'env' | 'source' | 'org' | 'team' | 'user' | 'agent';

/** `${env:NAME}` and `${source:handbook}`; another `$` in front makes it plain text. */
const pattern = /(\$?)\$\{(env|source|org|team|user|agent):([^}]*)\}/g;

type Path = (string | number)[];

/** Calls `visit` for each string in a value, with its path, and returns the value with what it returns. */
export function mapStrings(value: unknown, visit: (text: string, path: Path) => string, path: Path = []): unknown {
  if (typeof value === 'string') return visit(value, path);
  if (Array.isArray(value)) return value.map((one, at) => mapStrings(one, visit, [...path, at]));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value as Values).map(([name, one]) => [name, mapStrings(one, visit, [...path, name])]),
  );
}

/** Replaces references of these kinds in a text. A reference for which `find` returns undefined stays. */
export function replaceReferences(
  text: string,
  kinds: readonly ReferenceKind[],
  find: (kind: ReferenceKind, name: string) => string | undefined,
): string {
  return text.replace(pattern, (all, mark: string, kind: ReferenceKind, name: string) => {
    if (mark !== '' || !kinds.includes(kind)) return all;
    return find(kind, name) ?? all;
  });
}

/** The references in a text. */
export function referencesIn(text: string): { kind: ReferenceKind; name: string }[] {
  return [...text.matchAll(pattern)]
    .filter(([, mark]) => mark === '')
    .map(([, , kind, name]) => ({ kind: kind as ReferenceKind, name: name ?? '' }));
}

/** The text without the `$` that kept it from being a reference. */
export function unescapeReferences(text: string): string {
  return text.replace(pattern, (all, mark: string) => (mark === '' ? all : all.slice(1)));
}

/** The text in a file whose value is this text. */
export function escapeReferences(text: string): string {
  return text.replace(/\$\{(?=(?:env|source|org|team|user|agent):)/g, '$$$${');
}

/** The same text without what it takes from the environment. */
export function withoutEnvironment(text: string): string {
  return replaceReferences(text, ['env'], () => '');
}

export function takesEnvironment(text: string): boolean {
  return referencesIn(text).some(({ kind }) => kind === 'env');
}
