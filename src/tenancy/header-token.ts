import { isHeaderToken } from '../config/forms.ts';
import { invalidField } from '../lib/errors.ts';

/** Throws 422 for a key that cannot be sent in a header, which would otherwise fail with each request. */
export function requireHeaderToken(field: string, key: string | null | undefined): void {
  if (typeof key === 'string' && !isHeaderToken(key))
    throw invalidField(field, 'must be printable ASCII without spaces, because it is sent in a header');
}
