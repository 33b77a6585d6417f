import { setTimeout as sleep } from 'node:timers/promises';
import { defined } from '../../lib/defined.ts';
import { looksLikeId } from '../../lib/ids.ts';
import { ApiError } from '../errors.ts';
import type { Client } from './client.ts';
import { follow } from './follow.ts';
import { findId } from './names.ts';
import { readData } from './resources.ts';
import { jsonLine, type Session } from './session.ts';
import { formatTable, lookOfOutput } from './table.ts';

export type Run = { id: string; status: string; result?: unknown; error?: { code: string; message: string } };
export type Entry = { sequence: number; type: string; node_id?: string; record: { payload?: unknown } };
type JournalPage = { data: Entry[]; has_more: boolean; resume_cursor?: string };

export type InvokeOptions = { payload?: string; idempotencyKey?: string; wait: boolean };

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
    payload: options.payload === undefined ? {} : await readData(options.payload, '--payload'),
    ...defined({ idempotency_key: options.idempotencyKey }),
  };
  const run = await invokeNamed(session.client, automation, body);
  if (!options.wait) {
    await session.print(session.json ? jsonLine(run) : `${run.id}\n`);
    return 0;
  }
  session.say(`run ${run.id}`);
  return watch(session, run.id);
}

/** Invokes by id or lookup key first: a caller who may not list automations cannot look up their names. */
async function invokeNamed(client: Client, automation: string, body: unknown): Promise<Run> {
  const send = (named: string) =>
    client.send<Run>('POST', `/automations/${encodeURIComponent(named)}/invoke`, { body });
  try {
    return await send(automation);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404 || looksLikeId(automation)) throw error;
    const id = await findId(client, 'automation', automation).catch((other: unknown) => {
      throw other instanceof ApiError ? error : other;
    });
    return send(id);
  }
}

export type RunListOptions = {
  status?: string;
  automation?: string;
  search?: string;
  since?: string;
  until?: string;
  limit?: number;
  after?: string;
};

type RunPage = { data: Run[]; has_more: boolean; after_cursor?: string };

/** `quarry runs list`: the visible runs, newest first. */
export async function list(session: Session, options: RunListOptions): Promise<number> {
  const { status, automation, search, since, until, limit, after } = options;
  const filter = automation === undefined ? undefined : await findId(session.client, 'automation', automation);
  const found = await session.client.send<RunPage>('GET', '/automation_runs', {
    query: { status, automation: filter, search, since, until, limit, after_cursor: after },
  });
  if (session.json) await session.print(jsonLine(found));
  else if (found.data.length > 0) await session.print(formatTable(found.data, runColumns, lookOfOutput()));
  else session.say('None.');
  if (found.has_more) session.say(`There are more: --after ${found.after_cursor}`);
  return 0;
}

const runColumns = ['id', 'automation_name', 'status', 'created_at', 'completed_at'];

/** `quarry runs cancel <run…>`. */
export async function cancel(session: Session, ids: string[]): Promise<number> {
  for (const id of ids) await act(session, id, 'cancel');
  return 0;
}

/** `quarry runs signal <run> <name>`. */
export async function signal(
  session: Session,
  id: string,
  name: string,
  { payload }: { payload?: string },
): Promise<number> {
  const given = payload === undefined ? {} : { payload: await readData(payload, '--payload') };
  await act(session, id, 'signal', { name, ...given });
  return 0;
}

async function act(session: Session, id: string, verb: string, body?: unknown): Promise<void> {
  const path = `/automation_runs/${encodeURIComponent(id)}/${verb}`;
  const run = await session.client.send<Run>('POST', path, body === undefined ? {} : { body });
  await session.print(session.json ? jsonLine(run) : `${run.id}  ${run.status}\n`);
}

/** `quarry runs retry <run>`: starts a new run and watches it. */
export async function retry(session: Session, id: string, { wait }: { wait: boolean }): Promise<number> {
  const run = await session.client.send<Run>('POST', `/automation_runs/${encodeURIComponent(id)}/retry`);
  if (wait) session.say(`run ${run.id}`);
  else await session.print(session.json ? jsonLine(run) : `${run.id}\n`);
  return wait ? watch(session, run.id) : 0;
}

/** `quarry runs output <run>`: prints what the language model writes, as it writes it. */
export async function output(session: Session, id: string): Promise<number> {
  const path = `/automation_runs/${encodeURIComponent(id)}`;
  const isOver = async () => isEnded(await session.client.send<Run>('GET', path));
  for await (const { event, data } of follow(session, `${path}/output_stream`, {}, isOver)) {
    if (session.json) await session.print(jsonLine({ event, ...(data as object) }));
    else if (event === 'generation_text') await session.print((data as { text: string }).text);
    else if (event === 'generation_ended') await session.print('\n');
  }
  return 0;
}

/** Calls `onEntry` once for each journal entry, in order, until the run ends. Returns the final run. */
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
    if (isEnded(run)) return run;
    pauseMs = page.data.length > 0 ? firstPauseMs : Math.min(pauseMs * 1.5, lastPauseMs);
    await sleep(pauseMs, undefined, signal === undefined ? {} : { signal });
  }
}

function isEnded({ status }: Run): boolean {
  return ['completed', 'failed', 'cancelled'].includes(status);
}

export function describeEntry(entry: Entry): string {
  const payload = entry.record.payload === undefined ? '' : ` ${shorten(JSON.stringify(entry.record.payload))}`;
  return `${String(entry.sequence).padStart(5)} ${entry.type}${entry.node_id ? ` ${entry.node_id}` : ''}${payload}`;
}

export function describeEnd(run: Run): string {
  return `${run.status} ${JSON.stringify(run.result ?? run.error ?? null)}`;
}

function shorten(text: string): string {
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}
