import { unwatchFile, watchFile } from 'node:fs';
import type { FastifyInstance } from 'fastify';
import type { FirstPlace } from '../apps/bootstrap.ts';
import { CellSet, type Injected, type OpenCell } from '../cells/cell-set.ts';
import { Directory } from '../cells/directory.ts';
import { type CellFront, createFront } from '../cells/front.ts';
import {
  CellRefused,
  claimCell,
  prepareDirectory,
  refuseForeign,
  refuseStrayApps,
  requireCellSecret,
} from '../cells/identity.ts';
import { Directory as MoveDirectory } from '../cells/move/directory.ts';
import { resumeMoves } from '../cells/move/resume.ts';
import { type CellMembership, createPlacement } from '../cells/placement.ts';
import { type CellSettings, cellsFile, readCells } from '../cells/settings.ts';
import { hasApp, insertOwnApps, listUnknownCells } from '../cells/store.ts';
import { ConfigError, runsJobs } from '../config/config.ts';
import { openDatabase } from '../db/database.ts';
import { canServe, SchemaMismatchError } from '../db/migrate.ts';
import { BlobStoreMismatchError } from '../files/store-identity.ts';
import { whenClosed } from '../http/closed.ts';
import type { Front } from '../http/front.ts';
import { readPendingApp } from '../identity/sign-in.ts';
import { untilNone } from '../lib/clock.ts';
import { limits } from '../lib/limits.ts';
import { rewrapKeys } from '../tenancy/rotation-store.ts';
import { createServer, type QuarryServer } from './server.ts';
import { createServices, type Services } from './services.ts';

/** The cells of this process. */
export type ProcessCells = {
  front: Front;
  home: CellMembership;
  set: CellSet;
  directory: Directory;
  /** The services and routes of the further cells that are open, by name. */
  opened: ReadonlyMap<string, CellParts>;
  /** Opens the cells, in the background. `server` has the routes of the directory's database. */
  start(server: QuarryServer): Promise<void>;
  /** Lists the apps of the directory's database, such as the one that the first start creates. */
  listOwnApps(): Promise<void>;
  /** Where the first app is created, when the cells are open. Undefined if the directory's database is a cell. */
  createFirst: FirstPlace | undefined;
  close(): Promise<void>;
};

type CellParts = { services: Services; server: QuarryServer };

/** Prepares the directory for these cells. Throws CellRefused if its database is not the right one. */
export async function prepareCells(home: Services, cells: readonly CellSettings[]): Promise<ProcessCells> {
  const { log, secrets, config } = home;
  const own = cells.find(({ target }) => target === undefined);
  const installation = await prepareDirectory(home.db, cells, secrets);
  const directory = new Directory(home.db, (appId) => {
    const further = [...opened].map(([name, { services }]) => [name, services] as const);
    void endStreams(directory, [[own?.name, home], ...further], appId);
  });
  const membership = (name: string) => createMembership(name, { placement, front, set, directory });
  const opened = new Map<string, CellParts>();
  const set: CellSet = new CellSet({
    async open(cell) {
      const { parts, ...open } = await openCell(home, cell, installation, membership(cell.name));
      opened.set(cell.name, parts);
      return open;
    },
    isRefusal: (error) => refusals.some((kind) => error instanceof kind),
    log,
  });
  const placement = createPlacement({ directory: home.db, set });
  const front = createFront({ set, directory, readers: { appOfSignIn: (cookie) => readPendingApp(secrets, cookie) } });
  await directory.listen(home.direct);
  const metric = 'Whether this process can use the database of the cell';
  home.process.metrics.gaugeOfCells('quarry_cell_up', metric, () =>
    set.listStates().map(([name, isUp]) => [name, isUp ? 1 : 0]),
  );
  const file = cellsFile(config);
  let named = cells;
  let moves: ReturnType<typeof resumeMoves> | undefined;
  return {
    ...{ front, set, directory, opened, home: membership(own?.name ?? '') },
    async start(server) {
      forwardKeysInBodies(server.fastify, front);
      if (own !== undefined) {
        await insertOwnApps(home.db, own.name);
        set.addOpen(own, openHome(home, server));
      }
      for (const { cell } of await listUnknownCells(home.db))
        log.error({ cell }, 'The directory has apps in a cell that it does not list');
      set.apply(cells.filter(({ target }) => target !== undefined));
      if (runsJobs(config)) moves = resumeMoves({ db: home.db, directory: () => directoryOfMoves(home, named), log });
      if (file !== undefined)
        watchFile(file, { interval: reloadMs, persistent: false }, async () => {
          named = (await rereadCells(home, set)) ?? named;
        });
    },
    async listOwnApps() {
      if (own !== undefined) await insertOwnApps(home.db, own.name);
    },
    createFirst: own === undefined ? createFirst : undefined,
    async close() {
      if (file !== undefined) unwatchFile(file);
      await Promise.all([front.settled().then(() => set.close()), moves?.stop()]);
    },
  };

  async function createFirst(...place: Parameters<FirstPlace>): Promise<void> {
    await set.settled();
    await placement.createFirst(...place);
  }
}

type MembershipDeps = {
  placement: CellMembership['placement'];
  front: CellFront;
  set: CellSet;
  directory: Directory;
};

/** What the cell of this name asks about its apps. */
function createMembership(name: string, { placement, front, set, directory }: MembershipDeps): CellMembership {
  return {
    placement,
    async hasMoved(request, app = front.appOf(request)) {
      if (app === undefined || (await hasApp(set.get(name).db, app))) return false;
      directory.forget(app);
      const place = await directory.find(app);
      return place !== undefined && place.cell !== name;
    },
    async ownsApp(appId) {
      const place = await directory.find(appId);
      return place?.cell === name && place.state === 'here';
    },
    async databaseElsewhere(appId) {
      const place = await directory.find(appId);
      return place === undefined || place.cell === name ? undefined : set.get(place.cell).db;
    },
  };
}

/** Ends the streams of an app, or of all apps, that another cell has now. Their clients resume there. */
async function endStreams(
  directory: Directory,
  cellsHere: (readonly [name: string | undefined, Services])[],
  appId: string | undefined,
): Promise<void> {
  for (const [name, { streams }] of cellsHere)
    for (const app of appId === undefined ? streams.listApps() : [appId]) {
      if (!streams.listApps().has(app)) continue;
      const place = await directory.find(app).catch(() => undefined);
      if (place !== undefined && place.cell !== name) streams.endApp(app);
    }
}

/** Reads the file of QUARRY_CELLS again. Returns undefined if the file is wrong, which changes nothing. */
async function rereadCells(
  { config, db, secrets, log }: Services,
  set: CellSet,
): Promise<readonly CellSettings[] | undefined> {
  try {
    const read = readCells(config) ?? [];
    await prepareDirectory(db, read, secrets);
    set.apply(read.filter(({ target }) => target !== undefined));
    log.info({ cells: read.map(({ name }) => name) }, 'Read the cells again');
    return read;
  } catch (error) {
    log.error({ err: error }, 'The changed cells cannot be used; the earlier ones stay');
    return undefined;
  }
}

/** The directory and the cells as a move uses them: without a pooler. */
function directoryOfMoves({ directTarget: home }: Services, cells: readonly CellSettings[]): MoveDirectory {
  return new MoveDirectory(
    home,
    cells.map(({ name, target, directTarget, acceptsNewApps }) => ({
      ...{ name, target: directTarget ?? target ?? home, acceptsNewApps },
    })),
  );
}

const refusals = [CellRefused, SchemaMismatchError, BlobStoreMismatchError, ConfigError];
const reloadMs = 2_000;

/** Starts the services, routes and jobs of a cell, without listening. */
async function openCell(
  home: Services,
  { name, target, directTarget }: CellSettings,
  installation: string,
  membership: CellMembership,
): Promise<OpenCell & { parts: CellParts }> {
  if (target === undefined) throw new Error('The cell has no database of its own.');
  const timeoutMs = home.config.databaseTimeoutSeconds * 1_000;
  const probe = openDatabase(directTarget ?? target, { poolSize: 1, applicationName: 'quarry-cells', timeoutMs });
  // Before anything is migrated.
  await refuseForeign(home.db, probe, { name, installation }).finally(() => probe.end({ timeout: 1 }));
  const services = await createServices(home.config, home.log.child({ cell: name }), {
    ...{ clock: home.clock, cell: name, home, database: target, directDatabase: directTarget },
  });
  let server: QuarryServer | undefined;
  /** A count, because a set that each request enters and leaves keeps them from being freed while they are young. */
  let inProgress = 0;
  const close = async (): Promise<void> => {
    const drained = untilNone(() => inProgress, limits.drainTimeoutMs).then(() => server?.close());
    await Promise.all([server?.stopWork(), services.stopWorkers(), drained]);
    await services.close();
  };
  try {
    await claimCell(home.db, services.db, { name, installation });
    await requireCellSecret(services.db, name, services.secrets);
    await refuseStrayApps(home.db, services.db, name);
    if (home.config.secretPrevious !== undefined) await rewrapKeys(services.db, services.secrets);
    server = await createServer(services, { cells: membership });
    const { fastify, work } = server;
    await fastify.ready();
    if (runsJobs(home.config)) work.ticker.startTicking();
    await services.startWorkers(work);
    services.setReady();
    return {
      ...{ db: services.db, isHome: false, parts: { services, server } },
      handle(request, response) {
        inProgress++;
        whenClosed(response, () => inProgress--);
        fastify.routing(request, response);
      },
      inject: (request) => injectInto(fastify, request),
      check: () => requireServable(services, name),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Rejects once a newer release has taken away from the database what this one uses. */
async function requireServable({ direct, schemaVersion }: Services, name: string): Promise<void> {
  if (!(await canServe(direct, schemaVersion)))
    throw new SchemaMismatchError(`The database of the cell ${name} is newer than this release.`);
}

/** The cell in the directory's own database, which the server of the process serves. */
function openHome({ db, direct }: Services, { fastify }: QuarryServer): OpenCell {
  return {
    ...{ db, isHome: true },
    handle: (request, response) => fastify.routing(request, response),
    inject: (request) => injectInto(fastify, request),
    check: () => direct`select 1`,
    close: async () => {},
  };
}

async function injectInto(fastify: FastifyInstance, request: Injected) {
  const { method, ...rest } = request;
  return fastify.inject({ ...rest, method: method as 'POST' });
}

/** Sign-in pages send the publishable key in the body, so the app of these requests is known only once it is read. */
function forwardKeysInBodies(fastify: FastifyInstance, front: CellFront): void {
  fastify.addHook('preHandler', async (request, reply) => {
    if (request.method !== 'POST' || !keyInBody.has(request.routeOptions.url ?? '')) return;
    const { publishable_key: key } = (request.body ?? {}) as { publishable_key?: string };
    const cell = key === undefined ? undefined : await front.findCellOfKey(key);
    if (cell === undefined || cell.isHome) return;
    const headers = { ...(request.headers as Record<string, string>) };
    for (const name of ['content-length', 'transfer-encoding']) delete headers[name];
    const { method, url, ip, body } = request;
    const response = await cell.inject({ method, url, headers, payload: JSON.stringify(body), remoteAddress: ip });
    return reply
      .code(response.statusCode)
      .headers(response.headers as Record<string, string>)
      .send(response.payload);
  });
}

const keyInBody = new Set(['/console/session', '/console/oidc/start']);
