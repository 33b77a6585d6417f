import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '../client/client.ts';
import { ApiError } from '../errors.ts';

/** Something that happened in the app. */
type Activity = { isFailure: boolean; text: string; event: string; data: unknown };

type Data = {
  automation?: string;
  run?: string;
  result?: unknown;
  error?: { code: string; message: string };
  question?: string;
  failure_reason?: string;
} & Record<string, unknown>;

const pauseMs = 1_000;
const charactersMax = 200;

/**
 * Yields runs that end, questions that they ask, and failures, as they happen. When the server ends the stream or is gone,
 * it connects again and continues after the last event, until the signal is given.
 */
export async function* followActivity(client: Client, signal: AbortSignal): AsyncGenerator<Activity> {
  const names = createNames(client);
  let lastEventId: string | undefined;
  while (!signal.aborted) {
    try {
      for await (const { id, event, data } of client.events('/events/stream', { lastEventId })) {
        lastEventId = id ?? lastEventId;
        const { type, data: payload } = data as { type: string; data: Data };
        const activity = event === 'event' ? await describe(type, payload, names) : undefined;
        if (activity) yield { ...activity, event: type, data: payload };
      }
    } catch (error) {
      // A server that is gone comes back. A refusal does not change by itself.
      if (signal.aborted || (error instanceof ApiError && error.status !== 0 && error.status < 500)) throw error;
    }
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
  }
}

async function describe(type: string, data: Data, names: (id: string) => Promise<string>) {
  const name = data.automation === undefined ? '' : await names(data.automation);
  const why = data.error ? `${data.error.code}: ${data.error.message}` : String(data.failure_reason ?? '');
  if (type === 'automation_run.completed')
    return { isFailure: false, text: `${name}  ${data.run}  completed  ${shorten(data.result ?? null)}` };
  if (type === 'automation_run.failed') return { isFailure: true, text: `${name}  ${data.run}  failed  ${why}` };
  if (type === 'approval.requested')
    return { isFailure: false, text: `${name}  ${data.run}  waits for approval  ${data.question}` };
  if (!type.endsWith('.failed')) return undefined;
  const what = String(data[type.split('.')[0] ?? ''] ?? '');
  return { isFailure: true, text: `${type}  ${what}  ${why}` };
}

const namesMax = 1_000;

/** The lookup key or name of an automation, by its id. */
function createNames(client: Client): (id: string) => Promise<string> {
  const names = new Map<string, string>();
  return async (id) => {
    const known = names.get(id);
    if (known !== undefined) return known;
    type Automation = { lookup_key?: string; name: string };
    const found = await client.send<Automation>('GET', `/automations/${id}`).catch(() => undefined);
    const name = found?.lookup_key ?? found?.name ?? id;
    if (names.size >= namesMax) names.clear();
    names.set(id, name);
    return name;
  };
}

function shorten(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > charactersMax ? `${text.slice(0, charactersMax - 1)}…` : text;
}
