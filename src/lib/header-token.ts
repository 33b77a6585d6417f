import { invalidField } from './errors.ts';

/** Whether a key can be sent in a header, which would otherwise fail with each request. */
export function isHeaderToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}

/** Throws 422 for a key that cannot be sent in a header. */
export function requireHeaderToken(field: string, key: string | null | undefined): void {
  if (typeof key === 'string' && !isHeaderToken(key))
    throw invalidField(field, 'must be printable ASCII without spaces, because it is sent in a header');
}
