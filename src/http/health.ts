import type { BlobStore } from '../blob/blob-store.ts';
import type { Database } from '../db/database.ts';
import { canServe } from '../db/migrate.ts';
import { withinTime } from '../lib/clock.ts';
import { AppError, notFound } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { limits } from '../lib/limits.ts';
import type { Logger } from '../lib/log.ts';
import { Type } from '../lib/type.ts';
import { digest, isDigestOf } from '../tenancy/secrets.ts';
import type { Metrics } from './metrics.ts';
import type { Api } from './route/route.ts';

type HealthDeps = {
  db: Database;
  /** The number of this release's last migration. */
  schemaVersion: number;
  blobs: BlobStore;
  metrics: Metrics;
  log: Logger;
  /** The bearer token that /metrics requires, or undefined if it requires none. */
  metricsToken: string | undefined;
  /** Whether metrics are served on a separate port. */
  metricsElsewhere: boolean;
  /** False while the server is starting. */
  isReady(): boolean;
};

/** Registers liveness (/healthz), readiness (/readyz) and metrics (/metrics). */
export function registerHealthRoutes(api: Api, deps: HealthDeps): void {
  api.public({
    method: 'GET',
    path: '/healthz',
    operationId: 'getHealth',
    tag: 'Server',
    summary: 'Check that the process is alive',
    description: 'Shows only that the process accepts requests. Does not need the database.',
    responses: { 200: Type.Object({ status: Type.Literal('ok') }) },
    handler: () => ({ status: 'ok' as const }),
  });
  let checking: ReturnType<typeof check> | undefined;
  /** Concurrent requests share one check. */
  const checkOnce = () => {
    checking ??= check(deps).finally(() => {
      checking = undefined;
    });
    return checking;
  };
  api.public({
    method: 'GET',
    path: '/readyz',
    operationId: 'getReadiness',
    tag: 'Server',
    summary: 'Check that the server can handle requests',
    description:
      'Checks the database, its migrations and the blob store. If one of them fails, returns 503 `unavailable` and names it in `details`.',
    responses: { 200: Type.Object({ status: Type.Literal('ready'), checks: checksSchema }) },
    handler: async () => {
      const checks = await checkOnce();
      if (Object.values(checks).every((outcome) => outcome === 'ok')) return { status: 'ready' as const, checks };
      throw new AppError('unavailable', 'The server is currently unavailable.', {
        details: checks,
        headers: { 'retry-after': '1' },
      });
    },
  });
  api.public({
    method: 'GET',
    path: '/metrics',
    operationId: 'getMetrics',
    protocol: 'metrics',
    tag: 'Server',
    summary: 'Get metrics in the Prometheus text format',
    description: 'Public, unless the settings name a bearer token or a separate port.',
    responses: { 200: Type.String() },
    handler: async ({ request, reply }) => {
      if (deps.metricsElsewhere) throw notFound();
      if (!mayReadMetrics(deps.metricsToken, request.headers.authorization))
        throw new AppError('unauthenticated', 'Send the bearer token from QUARRY_METRICS_TOKEN.');
      return reply.type(deps.metrics.registry.contentType).send(await deps.metrics.text());
    },
  });
}

export function mayReadMetrics(token: string | undefined, authorization: string | undefined): boolean {
  if (token === undefined) return true;
  return isDigestOf(authorization ?? '', digest(`Bearer ${token}`));
}

const outcomeSchema = Type.Enum(['ok', 'failed']);
const checksSchema = Type.Object({
  start: outcomeSchema,
  database: outcomeSchema,
  migrations: outcomeSchema,
  blobs: outcomeSchema,
});
type Outcome = 'ok' | 'failed';

async function check(deps: HealthDeps): Promise<Record<'start' | 'database' | 'migrations' | 'blobs', Outcome>> {
  const { db, schemaVersion, blobs, log } = deps;
  const outcome = async (name: string, run: () => Promise<boolean>): Promise<Outcome> => {
    try {
      if (await withinTime(limits.readinessTimeoutMs, run())) return 'ok';
    } catch (error) {
      log.warn({ err: error, check: name }, 'Not ready');
    }
    return 'failed';
  };
  const [database, migrations, blobStore] = await Promise.all([
    outcome('database', async () => (await db`select 1`).length === 1),
    outcome('migrations', () => canServe(db, schemaVersion)),
    outcome('blobs', async () => (await blobs.stat(`${newUuid()}/${newUuid()}`)) === undefined),
  ]);
  return { start: deps.isReady() ? 'ok' : 'failed', database, migrations, blobs: blobStore };
}
