import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../errors.ts';
import type { ServerEvent } from './client.ts';
import type { Session } from './session.ts';

const pauseMs = 1_000;

/**
 * Yields the events of a stream, without `ready`. When the server ends the stream or the connection is lost, reconnects
 * and continues after the last event, until `isOver` returns true. It begins after the event with the id `after`, or
 * with the next one.
 */
export async function* follow(
  session: Session,
  path: string,
  query: Record<string, string | undefined> = {},
  isOver: () => Promise<boolean> = async () => false,
  after?: string,
): AsyncGenerator<ServerEvent> {
  let lastEventId = after;
  for (;;) {
    try {
      for await (const event of session.client.events(path, { query, lastEventId })) {
        if (event.event === 'ready' && lastEventId === undefined) session.say('Watching. Ctrl-C ends it.');
        lastEventId = event.id ?? lastEventId;
        if (event.event === 'reset') session.say((event.data as { message: string }).message);
        else if (event.event !== 'ready') yield event;
      }
    } catch (error) {
      // Only a stream that has begun is resumed. A failure to connect the first time is an error.
      if (lastEventId === undefined || !(error instanceof ApiError) || error.status !== 0) throw error;
      session.progress.show(`${error.message.split('.', 1)[0]}: reconnecting`);
    }
    if (await isOver()) return;
    await sleep(pauseMs, undefined, { signal: session.signal });
  }
}
