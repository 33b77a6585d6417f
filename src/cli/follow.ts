import { setTimeout as sleep } from 'node:timers/promises';
import type { ServerEvent } from './client.ts';
import { ApiError } from './errors.ts';
import type { Session } from './session.ts';

const pauseMs = 1_000;

/**
 * The events of a stream without `ready`. When the server ends the stream or the connection is lost, the next one
 * continues after the last event, until `isOver` says so.
 */
export async function* follow(
  session: Session,
  path: string,
  query: Record<string, string | undefined> = {},
  isOver: () => Promise<boolean> = async () => false,
): AsyncGenerator<ServerEvent> {
  let lastEventId: string | undefined;
  for (;;) {
    try {
      for await (const event of session.client.events(path, { query, lastEventId })) {
        if (event.event === 'ready' && lastEventId === undefined) session.say('Watching. Ctrl-C ends it.');
        lastEventId = event.id ?? lastEventId;
        if (event.event === 'reset') session.say((event.data as { message: string }).message);
        else if (event.event !== 'ready') yield event;
      }
    } catch (error) {
      // Only a stream that has begun is resumed: a server that was never there is an error.
      if (lastEventId === undefined || !(error instanceof ApiError) || error.status !== 0) throw error;
      session.progress.show(`${error.message.split('.', 1)[0]}: trying again`);
    }
    if (await isOver()) return;
    await sleep(pauseMs, undefined, { signal: session.signal });
  }
}
