import { iso } from '../http/present.ts';
import { formatId } from '../ids.ts';
import type { LoggedEvent } from './store.ts';

/** The same shape as a message of a webhook. */
export function presentEvent({ id, name, position, payload, createdAt }: LoggedEvent) {
  return { id: formatId('event', id), type: name, timestamp: iso(createdAt), sequence: position, data: payload };
}
