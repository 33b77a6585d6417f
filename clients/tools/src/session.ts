import { ToolError } from './errors.ts';
import type { Limits } from './options.ts';

type CallOptions = { query?: object | undefined; signal?: AbortSignal | undefined; timeoutMs?: number | undefined };

/** The part of `Quarry` of `@quarry/client` that the tools use. Base URL, credential and its renewal remain the client's. */
export type QuarryClient = {
  readonly connection: {
    send<T>(method: string, path: string, body?: unknown, options?: CallOptions): Promise<T>;
  };
};

type RequestOptions = { body?: unknown; query?: Record<string, string | number | undefined> };
export type StoredFile = { id: string; filename: string; content_type: string; size: number; url: string };

/** Longer than any tool. */
const requestMs = 600_000;
const firstPauseMs = 150;
const lastPauseMs = 2_000;

/** One call of a tool: every request and every pause of it ends with its signal. */
export class Session {
  readonly limits: Limits;
  readonly signal: AbortSignal;
  readonly #client: QuarryClient;

  constructor(client: QuarryClient, limits: Limits, signal: AbortSignal) {
    this.#client = client;
    this.limits = limits;
    this.signal = signal;
  }

  request<T>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, options: RequestOptions = {}): Promise<T> {
    const { body, query } = options;
    // The signal has the deadline of the tool, which covers all of its requests.
    return this.#client.connection.send<T>(method, path, body, { query, signal: this.signal, timeoutMs: requestMs });
  }

  getFile(id: string): Promise<StoredFile> {
    return this.request('GET', `/api/v1/files/${encodeURIComponent(id)}`);
  }

  /** A range of a file by its signed URL, which needs no credential and is never shown to the model. */
  async readRange(file: StoredFile, start: number, end: number): Promise<Uint8Array> {
    if (start >= end) return new Uint8Array();
    const headers = { range: `bytes=${start}-${end - 1}` };
    const response = await fetch(file.url, { headers, signal: this.signal });
    // Without a range, the whole file would arrive.
    if (response.status !== 206) {
      await response.body?.cancel();
      throw new ToolError(
        'download_failed',
        `The file could not be downloaded (${response.status}). Call again later.`,
      );
    }
    return new Uint8Array(await response.arrayBuffer());
  }

  /** Looks with growing pauses until `ended`, for at most the seconds that the options allow. */
  async waitFor<T>(first: T, ended: (state: T) => boolean, look: () => Promise<T>): Promise<T> {
    const until = performance.now() + this.limits.waitSeconds * 1_000;
    let state = first;
    let pauseMs = firstPauseMs;
    while (!ended(state)) {
      const leftMs = until - performance.now();
      if (leftMs <= 0) return state;
      await this.#pause(Math.min(pauseMs, leftMs));
      pauseMs = Math.min(pauseMs * 1.5, lastPauseMs);
      state = await look();
    }
    return state;
  }

  #pause(ms: number): Promise<void> {
    const { signal } = this;
    return new Promise((resolve, reject) => {
      const stop = () => {
        clearTimeout(timer);
        reject(signal.reason);
      };
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', stop);
        resolve();
      }, ms);
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
    });
  }
}
