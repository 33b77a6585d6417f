import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { programFile } from '../../lib/program-file.ts';

/** What `quarry serve` sends to the process that started it. */
export type Serving = { type: 'serving'; baseUrl: string };

type Options = {
  /** Ends the server, and the waiting for it. */
  signal: AbortSignal;
  onLog(line: string): void;
  /** Called each time that the server is ready. */
  onReady(baseUrl: string): void;
  /** Called when it ended by itself and is about to start again. */
  onCrash(how: string): void;
};

const mainFile = programFile('../../main', import.meta.url);
const firstPauseMs = 500;
const lastPauseMs = 10_000;
const stopTimeoutMs = 12_000;

/**
 * Runs `quarry serve` in a process of its own, and starts it again when it ends by itself. It ends with this process, also
 * if this one is killed: it notices the end of the channel between them.
 */
export class DevServer {
  readonly #options: Options;
  #child: ChildProcess | undefined;
  #isRestarting = false;

  constructor(options: Options) {
    this.#options = options;
  }

  /** Returns when the signal is given, with 0; or when the server never became ready, with its exit code. */
  async run(): Promise<number> {
    const { signal, onCrash } = this.#options;
    let wasReady = false;
    let pauseMs = firstPauseMs;
    while (!signal.aborted) {
      const { how, code, isReady } = await this.#serve();
      if (signal.aborted) break;
      wasReady ||= isReady;
      if (this.#isRestarting) {
        this.#isRestarting = false;
        continue;
      }
      if (!wasReady) return code;
      pauseMs = isReady ? firstPauseMs : Math.min(lastPauseMs, pauseMs * 2);
      onCrash(how);
      await sleep(pauseMs, undefined, { signal }).catch(() => {});
    }
    return 0;
  }

  /** Stops the server and starts it with the present environment. */
  restart(): void {
    // Without a child, the next one is about to start, with the present environment.
    this.#isRestarting = this.#child !== undefined;
    if (this.#child) stop(this.#child);
  }

  /** Ends the server without waiting for its requests. */
  kill(): void {
    this.#child?.kill('SIGKILL');
  }

  async #serve(): Promise<{ how: string; code: number; isReady: boolean }> {
    const { signal, onLog, onReady } = this.#options;
    // In a group of its own, so that Ctrl-C reaches only this process, which then stops the server in order.
    const child = spawn(process.execPath, ['--max-semi-space-size=8', mainFile, 'serve'], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      detached: true,
    });
    this.#child = child;
    if (child.stderr) createInterface({ input: child.stderr }).on('line', onLog);
    const end = () => stop(child);
    signal.addEventListener('abort', end, { once: true });
    let isReady = false;
    child.on('message', (message: Partial<Serving> | null) => {
      if (message?.type !== 'serving' || message.baseUrl === undefined) return;
      isReady = true;
      onReady(message.baseUrl);
    });
    const { code, by } = await new Promise<{ code: number | null; by: NodeJS.Signals | null }>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (ended, killedBy) => resolve({ code: ended, by: killedBy }));
    });
    signal.removeEventListener('abort', end);
    this.#child = undefined;
    return { how: by === null ? `exit code ${code}` : `signal ${by}`, code: code ?? 1, isReady };
  }
}

function stop(child: ChildProcess): void {
  child.kill('SIGTERM');
  setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs).unref();
}
