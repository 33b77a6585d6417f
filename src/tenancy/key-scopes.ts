import { AppError } from '../lib/errors.ts';

/** What a secret key with scopes may reach. Each operation belongs to one area. */
const keyAreas = ['files', 'extractions', 'knowledge', 'automations', 'kv', 'webhooks', 'people', 'app'] as const;
export type KeyArea = (typeof keyAreas)[number];

/** `read` allows reading in every area, `kv` all operations of an area, `kv:read` reading in it. */
export const keyScopes = ['read', ...keyAreas, ...keyAreas.map((area) => `${area}:read` as const)] as const;
export type KeyScope = (typeof keyScopes)[number];

/** The areas that a user can open to an assistant: those of the MCP endpoint's tools. */
export const assistantAreas = ['files', 'extractions', 'knowledge', 'automations', 'kv'] as const;

/** Whether one of the scopes allows an operation of this area. Without scopes, a key may do everything. */
export function hasScope(scopes: readonly KeyScope[] | undefined, area: KeyArea, reads: boolean): boolean {
  if (scopes === undefined || scopes.includes(area)) return true;
  return reads && (scopes.includes('read') || scopes.includes(`${area}:read`));
}

/** One thing to do: reading or changing in an area. */
export type ScopeNeed = { area: KeyArea; reads: boolean };

/** What both allow. Undefined allows everything. */
export function intersectScopes(
  one: readonly KeyScope[] | undefined,
  other: readonly KeyScope[] | undefined,
): readonly KeyScope[] | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const both = (area: KeyArea, reads: boolean) => hasScope(one, area, reads) && hasScope(other, area, reads);
  return keyAreas.flatMap((area): KeyScope[] =>
    both(area, false) ? [area] : both(area, true) ? [`${area}:read`] : [],
  );
}

/** Whether `scopes` allow everything that `wanted` allow. */
export function coversScopes(
  scopes: readonly KeyScope[] | undefined,
  wanted: readonly KeyScope[] | undefined,
): boolean {
  if (scopes === undefined) return true;
  return (
    wanted !== undefined &&
    keyAreas.every((area) =>
      [false, true].every((reads) => !hasScope(wanted, area, reads) || hasScope(scopes, area, reads)),
    )
  );
}

/** Throws 403 unless one of the scopes allows this in the area. `words` name whose scopes they are, and what they must allow. */
export function requireScope(
  scopes: readonly KeyScope[] | undefined,
  { area, reads }: ScopeNeed,
  words: { holder?: string; what?: string } = {},
): void {
  if (hasScope(scopes, area, reads)) return;
  const { holder = 'this key', what = 'the operation' } = words;
  throw new AppError(
    'forbidden',
    `The scopes of ${holder} do not allow ${what}. It requires ${area}${reads ? ` or ${area}:read` : ''}.`,
  );
}

/** Whether the scopes allow reading in every area: what shows things of all of them needs that. */
export function readsEverything(scopes: readonly KeyScope[] | undefined): boolean {
  return keyAreas.every((area) => hasScope(scopes, area, true));
}
