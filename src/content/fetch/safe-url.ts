import { invalidField } from '../../lib/errors.ts';
import type { Fetcher } from './guarded-fetch.ts';

/** Parses a URL. 422 on the field unless the server may send requests to it. */
export function requireSafeUrl(fetcher: Pick<Fetcher, 'check'>, field: string, text: string): URL {
  const checked = fetcher.check(text);
  if (!checked.ok) throw invalidField(field, checked.problem);
  return checked.url;
}
