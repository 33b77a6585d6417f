import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { dirname } from 'node:path';
import { Lanes } from '../../fairness/lanes.ts';
import { startInBackground } from '../../lib/background-process.ts';
import { defined } from '../../lib/defined.ts';
import { AppError } from '../../lib/errors.ts';
import { programFile } from '../../lib/program-file.ts';
import type { Timeouts } from '../../lib/timeouts.ts';
import type { ExpressionReply, ExpressionRequest, ProcessReady } from './expression-process.ts';

/** A single app gets half of the processes; the others start once another app needs one. */
const processesMax = 4;
const memoryMb = 64;
/** A process that ends with its work is replaced by one that loads compiled code, in a third of the time. */
const compileCacheDirectory = getCompileCacheDir();
const environment = defined({ NODE_COMPILE_CACHE: compileCacheDirectory && dirname(compileCacheDirectory) });
/** Signals by which V8 ends a process that has no memory left. */
const outOfMemory = new Set(['SIGABRT', 'SIGTRAP', 'SIGILL']);
const waitingMax = 10_000;
/** The number of turns of which it is remembered that they ended a process. */
const costlyMax = 10_000;
const checkMs = 50;
/** If a process's processor time is unknown, its work may take this many times as long by the wall clock. */
const wallFactor = 5;
/** If it is known, this many times as long, apart from the time in which the process waited for a processor. */
const pausedFactor = 25;

type Work = {
  /** The app that the work belongs to. */
  lane: string;
  /** Work of an app with the same name takes turns, one piece at a time: that of an automation, or of a schema. */
  turn: string;
  request: ExpressionRequest;
};

type Task = Work & { resolve(reply: ExpressionReply): void };
type Child = {
  process: ChildProcess;
  ready: Promise<void>;
  task: Task | undefined;
  /** The app that it last worked for. */
  lane: string | undefined;
  startedMs: number;
  startedUse: Use | undefined;
  timer: NodeJS.Timeout | undefined;
};

/** How long a process has run, and has waited for a processor. */
type Use = { ranMs: number; waitedMs: number };

/**
 * Runs tenants' expressions, schemas and texts in child processes. A child is not enough: V8 ends the whole process
 * when a single string needs more memory than is left. Each app waits in its own lane, and in it each automation
 * has one place: its other work is behind it, so that an expression that never ends delays only its own automation.
 */
export class ExpressionPool {
  readonly #timeouts: Readonly<Timeouts>;
  readonly #children: Child[] = [];
  readonly #lanes = new Lanes<Task>({ slots: processesMax, waitingMax: Number.POSITIVE_INFINITY });
  /** What waits behind the place of its turn. A turn without a place has no entry. */
  readonly #behind = new Map<string, Task[]>();
  /** The turns whose last work ended its process, and how often in a row, the oldest first. */
  readonly #costly = new Map<string, number>();
  /** Until when turns of an app rest, by the clock of `performance`. */
  readonly #restingUntil = new Map<string, number>();
  readonly #waitingOf = new Map<string, number>();
  #waiting = 0;
  #closed = false;

  constructor(timeouts: Readonly<Timeouts>) {
    this.#timeouts = timeouts;
  }

  /** Throws AppError `unavailable` if too much work of this lane waits. */
  run(task: Work): Promise<ExpressionReply> {
    if (this.#closed) return Promise.resolve(closing);
    return new Promise((resolve, reject) => {
      const ofLane = this.#waitingOf.get(task.lane) ?? 0;
      if (ofLane >= waitingMax - this.#waiting) return reject(tooMany());
      this.#waiting += 1;
      this.#waitingOf.set(task.lane, ofLane + 1);
      this.#place({ ...task, resolve });
      this.#dispatch();
    });
  }

  /** Whether the next work of this turn waits for earlier work of it. */
  mustWait(lane: string, turn: string): boolean {
    return this.#behind.has(placeOf({ lane, turn }));
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const task of [...this.#lanes.drain(), ...[...this.#behind.values()].flat()]) task.resolve(closing);
    this.#behind.clear();
    const children = this.#children.splice(0);
    for (const child of children) this.#finish(child, closing);
    await Promise.all(children.map(end));
  }

  #place(task: Task): void {
    const behind = this.#behind.get(placeOf(task));
    if (behind) return void behind.push(task);
    this.#behind.set(placeOf(task), []);
    this.#lanes.add(task.lane, task);
  }

  /**
   * Starting a process costs the server more than what runs in it, so a turn that ends one again and again rests before
   * its next work, and such turns of an app one after another.
   */
  #rest(task: Task): void {
    const times = (this.#costly.get(placeOf(task)) ?? 0) + 1;
    this.#costly.delete(placeOf(task));
    this.#costly.set(placeOf(task), times);
    for (const oldest of this.#costly.keys()) {
      if (this.#costly.size <= costlyMax) break;
      this.#costly.delete(oldest);
    }
    if (times < 2) {
      this.#passPlace(task);
      return;
    }
    const now = performance.now();
    const until = Math.max(now, this.#restingUntil.get(task.lane) ?? 0) + this.#timeouts.restMs;
    this.#restingUntil.set(task.lane, until);
    setTimeout(() => {
      if (this.#restingUntil.get(task.lane) === until) this.#restingUntil.delete(task.lane);
      this.#passPlace(task);
      if (!this.#closed) this.#dispatch();
    }, until - now).unref();
  }

  /** Gives the place of finished work to the next of its turn, at the end of the lane. */
  #passPlace(task: Task): void {
    const next = this.#behind.get(placeOf(task))?.shift();
    if (next) this.#lanes.add(next.lane, next);
    else this.#behind.delete(placeOf(task));
  }

  #dispatch(): void {
    for (let next = this.#lanes.take(); next; next = this.#lanes.take()) {
      this.#waiting -= 1;
      const left = (this.#waitingOf.get(next.lane) ?? 0) - 1;
      if (left > 0) this.#waitingOf.set(next.lane, left);
      else this.#waitingOf.delete(next.lane);
      void this.#begin(this.#childFor(next.lane), next.item);
    }
  }

  /** The lane's previous process, which is warm; otherwise a new one, or at the maximum that of another lane. */
  #childFor(lane: string): Child {
    const idle = this.#children.filter(({ task }) => task === undefined);
    const own = idle.find((child) => child.lane === lane);
    if (own) return own;
    return this.#children.length < processesMax ? this.#start() : (idle[0] ?? this.#start());
  }

  async #begin(child: Child, task: Task): Promise<void> {
    child.task = task;
    child.lane = task.lane;
    await child.ready;
    if (child.task !== task) return;
    child.startedMs = performance.now();
    child.startedUse = readUse(child);
    child.timer = setInterval(() => this.#endLate(child, task), checkMs);
    child.process.send(task.request);
  }

  #endLate(child: Child, { request }: Task): void {
    const limitMs = this.#timeouts[`${request.kind}Ms`];
    const wallMs = performance.now() - child.startedMs;
    const [before, now] = [child.startedUse, readUse(child)];
    const late =
      before === undefined || now === undefined
        ? wallMs > limitMs * wallFactor
        : now.ranMs - before.ranMs > limitMs || wallMs - (now.waitedMs - before.waitedMs) > limitMs * pausedFactor;
    if (late) this.#replace(child, { problem: 'took longer than its deadline', limit: true });
  }

  #finish(child: Child, reply: ExpressionReply): void {
    const task = this.#release(child);
    if (!task) return;
    this.#costly.delete(placeOf(task));
    this.#passPlace(task);
    task.resolve(reply);
  }

  #release(child: Child): Task | undefined {
    clearInterval(child.timer);
    const { task } = child;
    if (!task) return undefined;
    child.task = undefined;
    this.#lanes.release(task.lane, performance.now() - child.startedMs);
    return task;
  }

  #replace(child: Child, reply: ExpressionReply): void {
    const at = this.#children.indexOf(child);
    if (at < 0) return;
    this.#children.splice(at, 1);
    void end(child);
    const task = this.#release(child);
    if (task) {
      this.#rest(task);
      task.resolve(reply);
    }
    if (!this.#closed) this.#dispatch();
  }

  #start(): Child {
    const forked = startInBackground((own) =>
      fork(programFile('./expression-entry', import.meta.url), [], {
        ...own,
        execArgv: [`--max-old-space-size=${memoryMb}`, '--max-semi-space-size=8', '--stack-size=3900'],
        ...{ env: environment, cwd: '/' },
        serialization: 'advanced',
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      }),
    );
    const ready = Promise.withResolvers<void>();
    const child: Child = {
      process: forked,
      ready: ready.promise,
      task: undefined,
      lane: undefined,
      startedMs: performance.now(),
      startedUse: undefined,
      timer: undefined,
    };
    forked.on('message', (reply: ExpressionReply | ProcessReady) => {
      if ('ready' in reply) return ready.resolve();
      this.#finish(child, reply);
      this.#dispatch();
    });
    const ended = (signal: NodeJS.Signals | null) => {
      const problem =
        signal && outOfMemory.has(signal) ? `needs more than ${memoryMb} MiB of memory` : 'ended its process';
      this.#replace(child, { problem, limit: true });
    };
    forked.on('error', () => ended(null));
    forked.on('exit', (_code, signal) => ended(signal));
    // A child does not keep this process alive.
    forked.unref();
    forked.channel?.unref();
    this.#children.push(child);
    return child;
  }
}

async function end({ process: { exitCode, signalCode }, process: child }: Child): Promise<void> {
  if (exitCode !== null || signalCode !== null || child.pid === undefined) return;
  const exited = once(child, 'exit');
  child.ref();
  child.kill('SIGKILL');
  await exited;
}

function placeOf({ lane, turn }: { lane: string; turn: string }): string {
  return `${lane} ${turn}`;
}

function tooMany(): AppError {
  const message = 'Too many expressions are waiting. Try again in a moment.';
  return new AppError('unavailable', message, { headers: { 'retry-after': '5' } });
}

const closing: ExpressionReply = { problem: 'came while the server was closing' };

/** What Linux reports of a child's main thread. */
function readUse({ process: { pid } }: Child): Use | undefined {
  try {
    const [ran, waited] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ', 2);
    return { ranMs: Number(ran) / 1e6, waitedMs: Number(waited) / 1e6 };
  } catch {
    return undefined;
  }
}
