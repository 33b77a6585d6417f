import { iso } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { LoggedEvent } from './store.ts';

/** The same shape as a message of a webhook. */
export function presentEvent({ id, name, position, payload, createdAt }: LoggedEvent) {
  return { id: formatId('event', id), type: name, timestamp: iso(createdAt), sequence: position, data: payload };
}
