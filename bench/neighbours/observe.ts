/**
 * What a server sees of its slow requests, printed as one line of JSON each. `bench/neighbours.ts --phases` loads this
 * into the server with `--import`.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { ChildProcess } from 'node:child_process';
import fs from 'node:fs';
import { type IncomingMessage, Server, type ServerResponse } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import { PerformanceObserver } from 'node:perf_hooks';
import pg from 'pg';

/** The time between two moments, in milliseconds. */
type Span = { from: number; to: number };
type Statement = Span & { text: string };
/** A turn of the event loop that ended late, and how long the thread of the loop ran on a processor in it. */
type LateTurn = Span & { ranMs: number };
type Request = Span & { method: string; path: string; statements: Statement[]; syncs: Span[] };

/** A slow request. All times are in milliseconds. */
export type Observed = {
  method: string;
  path: string;
  at: number;
  ms: number;
  /** In late turns of the event loop: while its thread ran, and while it waited for a processor or slept. */
  turns: number;
  descheduled: number;
  /** In turns that were not late: for statements of this request, and for syncs of files. */
  database: number;
  disk: number;
  /** Collecting garbage, part of `turns`. */
  collecting: number;
  longestMs: number;
  longest: string;
};

export const observedPrefix = 'observed ';
/** Followed by the milliseconds for which the start of a process blocked the event loop. */
export const startedPrefix = 'started a process ';
const slowMs = 8;
const tickMs = 3;
const lateMs = 3;
const keptMs = 5_000;

const current = new AsyncLocalStorage<Request>();
let lateTurns: LateTurn[] = [];
let collections: Span[] = [];
const now = () => performance.now();

if (process.argv.includes('serve')) {
  watchTurns();
  watchRequests();
  watchStatements();
  watchSyncs();
  watchStarts();
}

function watchTurns(): void {
  let dueAt = now() + tickMs;
  let before = process.threadCpuUsage();
  const tick = () => {
    const at = now();
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    if (at - dueAt >= lateMs) {
      lateTurns = lateTurns.filter(({ to }) => to > at - keptMs);
      lateTurns.push({ from: dueAt, to: at, ranMs: Math.min(at - dueAt, (user + system) / 1_000) });
    }
    dueAt = at + tickMs;
    setTimeout(tick, tickMs).unref();
  };
  setTimeout(tick, tickMs).unref();
  new PerformanceObserver((list) => {
    collections = collections.filter(({ to }) => to > now() - keptMs);
    for (const { startTime, duration } of list.getEntries())
      collections.push({ from: startTime, to: startTime + duration });
  }).observe({ entryTypes: ['gc'] });
}

function watchRequests(): void {
  const emit = Server.prototype.emit as (this: Server, name: string | symbol, ...values: unknown[]) => boolean;
  Server.prototype.emit = function (this: Server, name: string | symbol, ...values: unknown[]) {
    if (name !== 'request') return emit.call(this, name, ...values);
    const [{ method = '', url = '' }, response] = values as [IncomingMessage, ServerResponse];
    const request = { from: now(), to: 0, method, path: url.replace(/\?.*/, ''), statements: [], syncs: [] };
    response.once('close', () => {
      request.to = now();
      // The late turn that this is part of is known at the next tick.
      if (request.to - request.from >= slowMs) setTimeout(() => report(request), 2 * tickMs);
    });
    return current.run(request, () => emit.call(this, name, ...values));
  } as typeof Server.prototype.emit;
}

/** A statement that several requests share counts for the first of them. */
function watchStatements(): void {
  type Execution = { text?: string; handleReadyForQuery?: (...values: unknown[]) => unknown };
  const query = pg.Client.prototype.query as (this: pg.Client, execution: Execution, ...rest: unknown[]) => unknown;
  pg.Client.prototype.query = function (this: pg.Client, execution: Execution, ...rest: unknown[]) {
    const { handleReadyForQuery } = execution;
    const request = current.getStore();
    if (request !== undefined && handleReadyForQuery !== undefined) {
      const text = (execution.text ?? '').trim().replace(/\s+/g, ' ').slice(0, 50);
      const statement = { from: now(), to: Number.POSITIVE_INFINITY, text };
      request.statements.push(statement);
      execution.handleReadyForQuery = function (...values: unknown[]) {
        statement.to = now();
        return handleReadyForQuery.apply(this, values);
      };
    }
    return query.call(this, execution, ...rest);
  } as typeof pg.Client.prototype.query;
}

function watchSyncs(): void {
  const { fsync } = fs;
  fs.fsync = ((descriptor: number, done: (error: Error | null) => void) => {
    const span = { from: now(), to: Number.POSITIVE_INFINITY };
    current.getStore()?.syncs.push(span);
    fsync(descriptor, (error) => {
      span.to = now();
      done(error);
    });
  }) as typeof fs.fsync;
  syncBuiltinESMExports();
}

function watchStarts(): void {
  const prototype = ChildProcess.prototype as unknown as { spawn(...values: unknown[]): unknown };
  const { spawn } = prototype;
  prototype.spawn = function (...values: unknown[]) {
    const startedAt = now();
    const result = spawn.apply(this, values);
    process.stderr.write(`${startedPrefix}${(now() - startedAt).toFixed(1)}\n`);
    return result;
  };
}

function report(request: Request): void {
  const { from, to, method, path, statements, syncs } = request;
  const late = lateTurns.filter((turn) => overlap(request, [turn]) > 0);
  const turns = late.reduce((sum, turn) => sum + turn.ranMs * (overlap(request, [turn]) / (turn.to - turn.from)), 0);
  const inTime = (spans: Span[]) =>
    merge(spans.map((span) => clip(span, request))).reduce(
      (sum, span) => sum + span.to - span.from - overlap(span, late),
      0,
    );
  const lengthOf = (statement: Statement) => overlap(request, [statement]);
  const longest = statements.toSorted((a, b) => lengthOf(b) - lengthOf(a))[0];
  const observed: Observed = {
    ...{ method, path, at: performance.timeOrigin + from, ms: to - from },
    ...{ turns, descheduled: overlap(request, late) - turns, database: inTime(statements), disk: inTime(syncs) },
    collecting: overlap(request, collections),
    longestMs: longest === undefined ? 0 : lengthOf(longest),
    longest: longest?.text ?? '',
  };
  const rounded = (_name: string, value: unknown) => (typeof value === 'number' ? Math.round(value * 10) / 10 : value);
  process.stderr.write(`${observedPrefix}${JSON.stringify(observed, rounded)}\n`);
}

function clip({ from, to }: Span, within: Span): Span {
  return { from: Math.max(from, within.from), to: Math.min(to, within.to) };
}

function overlap(within: Span, spans: Span[]): number {
  return spans.map((span) => clip(span, within)).reduce((sum, { from, to }) => sum + Math.max(0, to - from), 0);
}

/** Spans that overlap become one. */
function merge(spans: Span[]): Span[] {
  const merged: Span[] = [];
  for (const span of spans.toSorted((a, b) => a.from - b.from)) {
    const last = merged.at(-1);
    if (last !== undefined && span.from <= last.to) last.to = Math.max(last.to, span.to);
    else merged.push({ ...span });
  }
  return merged;
}
