import dgram from 'node:dgram';
import dns from 'node:dns';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import tls from 'node:tls';
import { FetchError } from '../../fetch/errors.ts';
import { ParseError } from '../types.ts';
import { encodeFrame, FrameReader } from './frame.ts';

export type TaskFields = Record<string, unknown>;
/** The result of a task: a JSON value, and bytes that are kept out of the JSON. */
type TaskResult = { value: unknown; blobs?: Uint8Array[] };
/** Reports how much of the task is done, in the task's own unit. */
export type OnProgress = (done: number, total: number) => void;
/** Sends a part of the result that remains valid even if the process ends before the rest is ready. */
type Emit = (part: unknown, blobs: Uint8Array[]) => void;
export type Task = (
  bytes: Uint8Array,
  fields: TaskFields,
  onProgress: OnProgress,
  emit: Emit,
) => TaskResult | Promise<TaskResult>;

const requestBytesMax = 1024 * 1024 * 1024;

/**
 * The main loop of a parser process: reports that it is ready, then handles one request after another until standard
 * input ends. Before the first request, it calls `warmUp` repeatedly while that returns true, so that the code is
 * compiled.
 * @param isWorn whether the process should be replaced after this request
 */
export function serve(
  tasks: Record<string, Task>,
  warmUp?: () => Promise<boolean>,
  isWorn: () => boolean = () => false,
): void {
  closeNetwork();
  silenceConsole();
  const reader = new FrameReader(requestBytesMax);
  const reply = (result: TaskResult) => sendReply(result, isWorn());
  let work = Promise.resolve();
  let asked = false;
  process.stdin.on('data', (chunk: Buffer) => {
    asked = true;
    for (const frame of reader.push(chunk)) {
      work = work.then(async () => reply(await runTask(tasks, frame.header, frame.blobs[0] ?? new Uint8Array())));
    }
  });
  process.stdin.on('end', () => process.exit(0));
  reply({ value: 'ready' });
  const warm = async (): Promise<void> => {
    if (!asked && warmUp && (await warmUp())) setTimeout(() => void warm(), 1);
  };
  void warm();
}

async function runTask(tasks: Record<string, Task>, header: TaskFields, bytes: Uint8Array): Promise<TaskResult> {
  const name = String(header.task);
  const task = Object.hasOwn(tasks, name) ? tasks[name] : undefined;
  try {
    if (!task) throw new Error(`no task ${name}`);
    return await task(bytes, (header.fields ?? {}) as TaskFields, reportProgress, emitPart);
  } catch (error) {
    return { value: { error: describe(error) } };
  }
}

function describe(error: unknown): Record<string, string> {
  if (error instanceof ParseError) {
    const cause = error.cause === undefined ? {} : { cause: String(error.cause).slice(0, 1000) };
    return { reason: error.reason, code: error.code, message: error.message, ...cause };
  }
  if (error instanceof FetchError) return { fetchCode: error.code, message: error.message };
  const detail = error instanceof Error ? (error.stack ?? error.message) : String(error);
  if (ranOutOfMemory(error)) return { reason: 'memory', message: detail.slice(0, 1000) };
  return { reason: 'unexpected', message: detail.slice(0, 4000) };
}

/** An allocation may reach the system's memory limit before the pool has checked. It then fails here. */
function ranOutOfMemory(error: unknown): boolean {
  return error instanceof Error && /allocation failed|unable to grow|out of memory|Aborted\(OOM\)/i.test(error.message);
}

function reportProgress(done: number, total: number): void {
  for (const part of encodeFrame({ progress: { done, total } }, [])) process.stdout.write(part);
}

function emitPart(part: unknown, blobs: Uint8Array[]): void {
  for (const piece of encodeFrame({ part }, blobs)) process.stdout.write(piece);
}

function sendReply(result: TaskResult, isWorn: boolean): void {
  const { user, system } = process.cpuUsage();
  const use = { rssBytes: process.memoryUsage.rss(), processorSeconds: (user + system) / 1_000_000, isWorn };
  for (const part of encodeFrame({ value: result.value, ...use }, result.blobs ?? [])) process.stdout.write(part);
}

/**
 * Node's permission model has no rule for the network before version 25: without a namespace, this is the only
 * barrier.
 */
function closeNetwork(): void {
  const refuse = (): never => {
    throw new Error('A parser process has no network.');
  };
  net.Socket.prototype.connect = refuse;
  net.Server.prototype.listen = refuse;
  Object.assign(net, { connect: refuse, createConnection: refuse, createServer: refuse });
  Object.assign(tls, { connect: refuse, createServer: refuse });
  Object.assign(http, { request: refuse, get: refuse, createServer: refuse });
  Object.assign(https, { request: refuse, get: refuse, createServer: refuse });
  Object.assign(http2, { connect: refuse, createServer: refuse, createSecureServer: refuse });
  Object.assign(dgram, { createSocket: refuse });
  Object.assign(dns, { lookup: refuse, resolve: refuse });
  Object.assign(dns.promises, { lookup: refuse, resolve: refuse });
  syncBuiltinESMExports();
  for (const name of ['fetch', 'WebSocket', 'EventSource']) Reflect.deleteProperty(globalThis, name);
}

/** Standard output is the channel to the pool, so output of libraries must not reach it. */
function silenceConsole(): void {
  for (const name of ['log', 'info', 'warn', 'error', 'debug', 'trace'] as const) console[name] = () => {};
}
