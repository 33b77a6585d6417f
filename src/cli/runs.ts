import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from './client.ts';
import { UsageError } from './errors.ts';
import { readJsonObject } from './ingest.ts';
import { findLocalFile, readAll } from './local-file.ts';
import { jsonLine, type Session } from './session.ts';

export type Run = { id: string; status: string; result?: unknown; error?: { code: string; message: string } };
export type Entry = { sequence: number; type: string; node_id?: string; record: { payload?: unknown } };
type JournalPage = { data: Entry[]; has_more: boolean; resume_cursor?: string };

export type InvokeOptions = { payload?: string; idempotencyKey?: string; wait: boolean };

const payloadBytesMax = 16 * 1024 * 1024;
const firstPauseMs = 100;
const lastPauseMs = 1_000;

/** `quarry runs watch <run>`: prints its journal as it grows, then its outcome. Exits 1 unless it completed. */
export async function watch(session: Session, id: string): Promise<number> {
  session.onInterrupt(`${id} continues on the server.`);
  const show = (entry: Entry) => session.print(session.json ? jsonLine(entry) : `${describeEntry(entry)}\n`);
  const run = await followRun(session.client, id, show, session.signal);
  await session.print(session.json ? jsonLine(run) : `${describeEnd(run)}\n`);
  return run.status === 'completed' ? 0 : 1;
}

/** `quarry runs invoke <automation>`: starts a run and watches it. */
export async function invoke(session: Session, automation: string, options: InvokeOptions): Promise<number> {
  const body = {
    payload: await readPayload(options.payload),
    ...(options.idempotencyKey === undefined ? {} : { idempotency_key: options.idempotencyKey }),
  };
  const path = `/automations/${encodeURIComponent(automation)}/invoke`;
  const run = await session.client.send<Run>('POST', path, { body });
  if (!options.wait) {
    await session.print(session.json ? jsonLine(run) : `${run.id}\n`);
    return 0;
  }
  session.say(`run ${run.id}`);
  return watch(session, run.id);
}

/** Passes on each journal entry once, in order, until the run ends. Returns the final run. */
export async function followRun(
  client: Client,
  id: string,
  onEntry: (entry: Entry) => void | Promise<void>,
  signal?: AbortSignal,
): Promise<Run> {
  const path = `/automation_runs/${encodeURIComponent(id)}`;
  let cursor: string | undefined;
  let pauseMs = firstPauseMs;
  for (;;) {
    // Read the status first: a journal read after the end is complete.
    const run = await client.send<Run>('GET', path);
    const page = await client.send<JournalPage>('GET', `${path}/journal`, {
      query: { limit: 100, after_cursor: cursor },
    });
    for (const entry of page.data) await onEntry(entry);
    if (page.resume_cursor !== undefined) cursor = page.resume_cursor;
    if (page.has_more) continue;
    if (['completed', 'failed', 'cancelled'].includes(run.status)) return run;
    pauseMs = page.data.length > 0 ? firstPauseMs : Math.min(pauseMs * 1.5, lastPauseMs);
    await sleep(pauseMs, undefined, signal === undefined ? {} : { signal });
  }
}

export function describeEntry(entry: Entry): string {
  const payload = entry.record.payload === undefined ? '' : ` ${shorten(JSON.stringify(entry.record.payload))}`;
  return `${String(entry.sequence).padStart(5)} ${entry.type}${entry.node_id ? ` ${entry.node_id}` : ''}${payload}`;
}

export function describeEnd(run: Run): string {
  return `${run.status} ${JSON.stringify(run.result ?? run.error ?? null)}`;
}

/** JSON, `@file`, or `-` for standard input. */
async function readPayload(given: string | undefined): Promise<Record<string, unknown>> {
  if (given === undefined) return {};
  if (given === '') throw new UsageError('--payload is empty.');
  if (given !== '-' && !given.startsWith('@')) return readJsonObject('--payload', given);
  const file = await findLocalFile(given === '-' ? '-' : given.slice(1));
  return readJsonObject('--payload', (await readAll(file, payloadBytesMax)).toString('utf8'));
}

function shorten(text: string): string {
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}
