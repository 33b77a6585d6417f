import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { Database } from '../db/database.ts';
import { withinTime } from '../lib/clock.ts';
import { AppError } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import type { CellSettings } from './settings.ts';

/*
 * Several databases, each with whole apps. Without QUARRY_CELLS, nothing of this folder runs.
 * - `settings.ts` reads QUARRY_CELLS; `identity.ts` makes a database a cell of this installation, or refuses it.
 * - `store.ts` has the tables of the directory, the database of DATABASE_URL: which cells there are, and which one has
 *   an app. `directory.ts` caches the places of apps; `tables.ts` says where each table without an app lives.
 * - `request-app.ts` reads the app from a request, and `front.ts` hands the request to the routes of its cell.
 * - `cell-set.ts` opens, checks and closes the cells of a process, each alone. boot/cells.ts creates the services and
 *   routes of one cell, with the parsers, caches and limits of the process.
 * - `placement.ts` chooses the cell of a new app; `status.ts` looks at every cell for the commands.
 */

/** A cell that this process serves. */
export type OpenCell = {
  db: Database;
  /** Whether its database is the directory, whose server has received the request. */
  isHome: boolean;
  /** Handles a request of one of its apps. */
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Sends a request of this process. */
  inject(request: Injected): Promise<InjectedResponse>;
  /** Rejects unless the database responds and has a schema that this release can serve. */
  check(): Promise<unknown>;
  /** Finishes its requests and jobs, and closes its connections. */
  close(): Promise<void>;
};

export type Injected = {
  method: string;
  url: string;
  headers: Record<string, string>;
  payload: string;
  remoteAddress: string;
};
type InjectedResponse = { statusCode: number; headers: Record<string, unknown>; payload: string };

type CellSetOptions = {
  /** Opens the database of a cell, migrates it and starts its services. */
  open(cell: CellSettings): Promise<OpenCell>;
  /** Whether the error means that the cell must not be used, so that retrying is of no use until it is corrected. */
  isRefusal(error: unknown): boolean;
  log: Logger;
};

const checkEveryMs = 1_000;
const checkTimeoutMs = 2_500;
const failuresMax = 2;
const noResponse = 'does not respond';
/** How long a stop waits for a cell that is being opened. */
const openingTimeoutMs = 5_000;
const retryMs = { first: 1_000, max: 30_000, refused: 60_000 };

/**
 * The cells of this process. Each starts, fails, recovers and stops alone: nothing waits for a cell that is down, and
 * its requests are refused immediately.
 */
export class CellSet {
  readonly #options: CellSetOptions;
  readonly #cells = new Map<string, Cell>();
  #closing: Promise<unknown> | undefined;

  constructor(options: CellSetOptions) {
    this.#options = options;
  }

  /** Adds a cell that is already open. */
  addOpen(settings: CellSettings, opened: OpenCell): void {
    this.#cells.set(settings.name, new Cell(settings, this.#options, opened));
  }

  /** Serves exactly these cells from now on, and those that were added open. */
  apply(wanted: readonly CellSettings[]): void {
    if (this.#closing !== undefined) return;
    for (const [name, cell] of this.#cells) {
      if (cell.isFixed) continue;
      const same = wanted.find((each) => each.name === name);
      if (
        same !== undefined &&
        same.target === cell.settings.target &&
        same.directTarget === cell.settings.directTarget
      )
        cell.settings = same;
      else {
        this.#cells.delete(name);
        this.#options.log.info({ cell: name }, 'A cell was removed from the settings');
        void cell.close();
      }
    }
    for (const settings of wanted)
      if (!this.#cells.has(settings.name)) {
        const cell = new Cell(settings, this.#options);
        this.#cells.set(settings.name, cell);
        cell.start();
      }
  }

  /** The cell if it can be used now. Throws 503 with the reason. */
  get(name: string): OpenCell {
    const cell = this.#cells.get(name);
    if (cell === undefined) throw unavailable('This server does not serve the cell of this app.');
    return cell.get();
  }

  /** Every cell that can be used now, with its settings. */
  listOpen(): { settings: CellSettings; opened: OpenCell }[] {
    return [...this.#cells.values()].flatMap(({ settings, opened, isUp }) =>
      opened !== undefined && isUp ? [{ settings, opened }] : [],
    );
  }

  /** Whether each cell can be used now. */
  listStates(): [name: string, isUp: boolean][] {
    return [...this.#cells].map(([name, { isUp }]) => [name, isUp]);
  }

  /** Resolves when every cell was opened or has failed once. */
  async settled(): Promise<void> {
    await Promise.all([...this.#cells.values()].map(({ firstTry }) => firstTry));
  }

  close(): Promise<unknown> {
    this.#closing ??= Promise.all([...this.#cells.values()].map((cell) => cell.close()));
    return this.#closing;
  }
}

class Cell {
  settings: CellSettings;
  readonly isFixed: boolean;
  readonly #options: CellSetOptions;
  readonly #firstTry = Promise.withResolvers<void>();
  opened: OpenCell | undefined;
  /** Why it cannot be used; undefined while it can. */
  #trouble: string | undefined = 'is starting';
  #failures = 0;
  #closed = false;
  #opening: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(settings: CellSettings, options: CellSetOptions, opened?: OpenCell) {
    this.settings = settings;
    this.#options = options;
    this.isFixed = opened !== undefined;
    if (opened === undefined) return;
    this.opened = opened;
    this.#trouble = undefined;
    this.#firstTry.resolve();
    this.#later(checkEveryMs, () => this.#check());
  }

  get isUp(): boolean {
    return this.#trouble === undefined;
  }

  get firstTry(): Promise<void> {
    return this.#firstTry.promise;
  }

  get(): OpenCell {
    if (this.opened !== undefined && this.#trouble === undefined) return this.opened;
    throw unavailable(`The database of this app ${this.#trouble}. Try again later.`);
  }

  start(): void {
    this.#opening = this.#open(retryMs.first);
  }

  /** Waits until its requests and jobs have ended, unless its database does not respond: then they cannot. */
  async close(): Promise<void> {
    const isSilent = this.#trouble === noResponse;
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#trouble = 'is no longer served here';
    if (this.isFixed) return;
    const finished = this.#finish();
    if (isSilent) finished.catch(() => {});
    else await Promise.race([finished, this.#untilSilent()]);
  }

  async #finish(): Promise<void> {
    await this.#opening;
    await this.opened?.close();
  }

  async #untilSilent(): Promise<void> {
    if (this.opened === undefined) return wait(openingTimeoutMs, undefined, { ref: false });
    for (let failures = 0; failures < failuresMax; ) {
      await wait(checkEveryMs, undefined, { ref: false });
      const checked = withinTime(checkTimeoutMs, Promise.resolve(this.opened.check()));
      failures = (await checked.then(() => true, this.#options.isRefusal)) ? 0 : failures + 1;
    }
  }

  async #open(nextMs: number): Promise<void> {
    const { open, isRefusal, log } = this.#options;
    const { name } = this.settings;
    try {
      const opened = await open(this.settings);
      this.opened = opened;
      if (this.#closed) return;
      this.#trouble = undefined;
      log.info({ cell: name }, 'A cell is open');
      this.#later(checkEveryMs, () => this.#check());
    } catch (error) {
      const refused = isRefusal(error);
      this.#trouble = refused ? 'is not set up correctly' : 'is unavailable';
      log.error({ err: error, cell: name }, refused ? 'A cell was refused' : 'A cell could not be opened');
      const waitMs = refused ? retryMs.refused : nextMs;
      this.#later(waitMs, async () => {
        this.#opening = this.#open(Math.min(2 * nextMs, retryMs.max));
      });
    } finally {
      this.#firstTry.resolve();
    }
  }

  /** A cell that does not respond is refused from the second failure on, so that its requests hold nothing. */
  async #check(): Promise<void> {
    const { name } = this.settings;
    try {
      await withinTime(checkTimeoutMs, Promise.resolve(this.opened?.check()));
      if (this.#trouble !== undefined && !this.#closed) this.#options.log.info({ cell: name }, 'A cell responds again');
      this.#failures = 0;
      if (!this.#closed) this.#trouble = undefined;
    } catch (error) {
      const refused = this.#options.isRefusal(error);
      this.#failures += 1;
      if (this.#failures === (refused ? 1 : failuresMax)) {
        this.#trouble = refused ? 'is not set up correctly' : noResponse;
        this.#options.log.error({ err: error, cell: name }, refused ? 'A cell is refused' : 'A cell does not respond');
      }
    }
    this.#later(checkEveryMs, () => this.#check());
  }

  #later(ms: number, run: () => Promise<void>): void {
    if (!this.#closed) this.#timer = setTimeout(() => void run(), ms).unref();
  }
}

function unavailable(message: string): AppError {
  return new AppError('unavailable', message, { headers: { 'retry-after': '5' } });
}
