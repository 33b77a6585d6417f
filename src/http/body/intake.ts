import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { Shares } from '../../fairness/shares.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError } from '../../lib/errors.ts';
import { limits } from '../../lib/limits.ts';
import { whenClosed } from '../closed.ts';

type IntakeOptions = {
  clock: Clock;
  /** Total memory of bodies in transit in this process. */
  memoryBytesMax: number;
};

declare module 'fastify' {
  interface FastifyInstance {
    intake: Intake;
  }
  interface FastifyRequest {
    /** Memory charged to a request until its response is sent. */
    response: ServerResponse;
  }
}

type HeldBytes = { app: string; bytes: number };

/**
 * Tracks the bodies that this process is receiving and processing: limits their shared memory, and enforces their
 * minimum speed.
 */
export class Intake {
  readonly #options: IntakeOptions;
  readonly #memory: Shares;
  readonly #held = new Map<FastifyRequest, HeldBytes[]>();
  readonly #arriving = new Set<Arrival>();
  #ticker: NodeJS.Timeout | undefined;

  constructor(options: IntakeOptions) {
    this.#options = options;
    this.#memory = new Shares(options.memoryBytesMax);
  }

  get heldBytes(): number {
    return this.#memory.held;
  }

  /** Charges bytes of a request's body to its app until the response is sent. */
  hold(request: FastifyRequest, bytes: number, app = appOf(request)): void {
    if (!this.#memory.fits(app, bytes)) throw memoryFull(app !== anonymous && bytes <= this.#memory.free);
    this.#memory.add(app, bytes);
    const held = this.#held.get(request);
    if (held !== undefined) return void held.push({ app, bytes });
    this.#held.set(request, [{ app, bytes }]);
    whenClosed(request.response, () => this.#release(request));
  }

  #release(request: FastifyRequest): void {
    for (const { app, bytes } of this.#held.get(request) ?? []) this.#memory.add(app, -bytes);
    this.#held.delete(request);
  }

  /** Calls back once if the body arrives too slowly. Returns a function that stops the watch. */
  watch(request: FastifyRequest, onSlow: (error: AppError) => void): () => void {
    const { socket } = request.raw;
    if (!(socket instanceof Socket)) return () => {};
    const arrival = { request, onSlow, bytesBefore: socket.bytesRead, checkedAt: this.#now(), waitedMs: 0 };
    this.#arriving.add(arrival);
    this.#ticker ??= setInterval(() => this.#checkSpeeds(), checkEveryMs).unref();
    return () => this.#arriving.delete(arrival);
  }

  close(): void {
    clearInterval(this.#ticker);
  }

  #checkSpeeds(): void {
    const now = this.#now();
    for (const arrival of this.#arriving) {
      const { request, onSlow, bytesBefore } = arrival;
      // The body is complete. From here on, only the server's own work takes time.
      if (request.raw.complete) {
        this.#arriving.delete(arrival);
        continue;
      }
      // Bytes that have arrived but are not yet read do not count against the client.
      if (request.raw.readableLength === 0) arrival.waitedMs += Math.max(0, now - arrival.checkedAt);
      arrival.checkedAt = now;
      const due = ((arrival.waitedMs - limits.bodyGraceMs) / 1_000) * limits.bodyBytesPerSecondMin;
      if (request.raw.socket.bytesRead - bytesBefore >= due) continue;
      this.#arriving.delete(arrival);
      onSlow(tooSlow());
    }
    if (this.#arriving.size > 0) return;
    clearInterval(this.#ticker);
    this.#ticker = undefined;
  }

  #now(): number {
    return this.#options.clock.now().getTime();
  }
}

type Arrival = {
  request: FastifyRequest;
  onSlow: (error: AppError) => void;
  bytesBefore: number;
  checkedAt: number;
  /** How long no bytes were available, in milliseconds. */
  waitedMs: number;
};

/** The app of the caller, or '' for a caller without an app. */
export function appOf({ identity }: FastifyRequest): string {
  return identity !== undefined && 'appId' in identity ? identity.appId : anonymous;
}

/** The group for bodies whose app is unknown. */
const anonymous = '';
const checkEveryMs = 1_000;
const headers = { 'retry-after': '1', connection: 'close' };

function memoryFull(byItself: boolean): AppError {
  return byItself
    ? new AppError('rate_limited', 'Your app has too many large request bodies in transit. Send fewer at a time.', {
        headers,
      })
    : new AppError('unavailable', 'Too many large request bodies are in transit. Try again shortly.', { headers });
}

function tooSlow(): AppError {
  const words = `The body must arrive at ${limits.bodyBytesPerSecondMin} bytes per second or faster after the first ${limits.bodyGraceMs / 1_000} s.`;
  return new AppError('request_timeout', words, { headers: { connection: 'close' } });
}
