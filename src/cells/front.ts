import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Front } from '../http/front.ts';
import { untilNone } from '../lib/clock.ts';
import { AppError } from '../lib/errors.ts';
import { digest } from '../tenancy/secrets.ts';
import type { CellSet, OpenCell } from './cell-set.ts';
import type { Directory } from './directory.ts';
import { mayNameApp, type NamedApp, nameApp, type Readers } from './request-app.ts';
import { findAppOfCredential } from './store.ts';

type FrontDeps = { set: CellSet; directory: Directory; readers: Readers };
type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const credentialsMax = 100_000;
const settleMsMax = 2_000;

export type CellFront = Front & {
  /** The cell of a key in the body of a request; undefined if the directory's own routes handle it. */
  findCellOfKey(key: string): Promise<OpenCell | undefined>;
  /** The app that a request named when it was handed to a cell. */
  appOf(request: IncomingMessage): string | undefined;
};

/**
 * Hands each request to the cell of its app. A request of a known app takes no turn of the event loop and no query.
 * What names no app, and what no cell knows, is handled by the routes of the directory's process, which refuse it.
 */
export function createFront({ set, directory, readers }: FrontDeps): CellFront {
  const refusals = new WeakMap<IncomingMessage, AppError>();
  /** The app of each credential. What a credential names never changes. */
  const apps = new Map<string, string>();
  /** Requests whose cell is being looked up. */
  let looking = 0;

  async function find(named: NamedApp): Promise<OpenCell | undefined> {
    const app = named !== undefined && 'credential' in named ? await findApp(set, apps, named.credential) : named?.app;
    const place = app === undefined ? undefined : await directory.find(app);
    return place === undefined ? undefined : set.get(place.cell);
  }

  /** The cell, if everything about the app is cached. */
  function peek(named: NamedApp): OpenCell | undefined {
    if (named === undefined) return undefined;
    const app = 'credential' in named ? apps.get(named.credential) : named.app;
    const place = app === undefined ? undefined : directory.peek(app);
    return place === undefined ? undefined : set.get(place.cell);
  }

  function refuse(request: IncomingMessage, response: ServerResponse, own: Handler, error: unknown): void {
    const reason = error instanceof AppError ? error : unavailable(error);
    refusals.set(request, reason);
    own(request, response);
  }

  return {
    refusalOf: (request) => refusals.get(request),

    dispatch(request, response, own) {
      try {
        const named = mayNameApp(request.url ?? '/') ? nameApp(request, readers) : undefined;
        if (named === undefined) return own(request, response);
        const known = peek(named);
        if (known !== undefined) return known.handle(request, response);
        looking++;
        find(named)
          .then(
            (cell) => {
              // The client has left, and what counts the request would never see its end.
              if (response.closed) return;
              if (cell === undefined) own(request, response);
              else cell.handle(request, response);
            },
            (error: unknown) => refuse(request, response, own, error),
          )
          .finally(() => looking--);
      } catch (error) {
        refuse(request, response, own, error);
      }
    },

    settled: () => untilNone(() => looking, settleMsMax),

    findCellOfKey: (key) => find({ credential: key }),

    appOf(request) {
      const named = mayNameApp(request.url ?? '/') ? nameApp(request, readers) : undefined;
      return named !== undefined && 'credential' in named ? apps.get(named.credential) : named?.app;
    },
  };
}

/** Asks every cell that is up, once. Throws 503 if none knows the credential and one of the others might. */
async function findApp(set: CellSet, apps: Map<string, string>, text: string): Promise<string | undefined> {
  const known = apps.get(text);
  if (known !== undefined) return known;
  const cells = set.listOpen();
  const asked = new Set(cells.map(({ settings }) => settings.name));
  const results = await Promise.allSettled(
    cells.map(async ({ opened }) => findAppOfCredential(opened.db, digest(text))),
  );
  const found = results.find((each) => each.status === 'fulfilled' && each.value !== undefined);
  if (found?.status === 'fulfilled' && found.value !== undefined) {
    if (apps.size >= credentialsMax) apps.clear();
    apps.set(text, found.value);
    return found.value;
  }
  const failed = results.find((each) => each.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  // One that has come back meanwhile was not asked.
  if (set.listStates().some(([name]) => !asked.has(name)))
    throw new AppError('unavailable', 'A database that may know this credential is unavailable. Try again later.', {
      headers: { 'retry-after': '5' },
    });
  return undefined;
}

/** The directory or a cell could not be asked. */
function unavailable(cause: unknown): AppError {
  return new AppError('unavailable', 'The database is currently unavailable. Try again.', {
    cause,
    headers: { 'retry-after': '1' },
  });
}
