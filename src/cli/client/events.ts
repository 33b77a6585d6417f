import { follow } from './follow.ts';
import { jsonLine, type Session } from './session.ts';

export type EventWatchOptions = { type?: string; limit?: number };
type Event = { type: string; timestamp: string; sequence: number; data: unknown };

/** `quarry events watch`: prints events as they happen, until Ctrl-C or `limit` of them. */
export async function watch(session: Session, { type, limit = Number.POSITIVE_INFINITY }: EventWatchOptions) {
  let seen = 0;
  for await (const { event, data } of follow(session, '/events/stream')) {
    const found = data as Event;
    if (event !== 'event' || (type !== undefined && found.type !== type)) continue;
    const line = `${found.timestamp}  ${found.sequence}  ${found.type}  ${JSON.stringify(found.data)}\n`;
    await session.print(session.json ? jsonLine(found) : line);
    seen += 1;
    if (seen >= limit) break;
  }
  return 0;
}
