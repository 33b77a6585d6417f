import { AppError } from '../errors.ts';

/** What a secret key with scopes may reach. Each operation belongs to one area. */
const keyAreas = ['files', 'extractions', 'knowledge', 'automations', 'kv', 'webhooks', 'people', 'app'] as const;
export type KeyArea = (typeof keyAreas)[number];

/** `read` allows reading in every area, `kv` all operations of an area, `kv:read` reading in it. */
export const keyScopes = ['read', ...keyAreas, ...keyAreas.map((area) => `${area}:read` as const)] as const;
export type KeyScope = (typeof keyScopes)[number];

/** Whether one of the scopes allows an operation of this area. Without scopes, a key may do everything. */
export function hasScope(scopes: readonly KeyScope[] | undefined, area: KeyArea, reads: boolean): boolean {
  if (scopes === undefined || scopes.includes(area)) return true;
  return reads && (scopes.includes('read') || scopes.includes(`${area}:read`));
}

/** Throws 403 unless one of the scopes allows an operation of this area. */
export function requireScope(scopes: readonly KeyScope[] | undefined, area: KeyArea, reads: boolean): void {
  if (hasScope(scopes, area, reads)) return;
  throw new AppError(
    'forbidden',
    `The scopes of this key do not allow the operation. It requires ${area}${reads ? ` or ${area}:read` : ''}.`,
  );
}
