/** One of the two servers that bench/kv.ts compares; prints its URL. */
import Fastify from 'fastify';
import postgres from 'postgres';
import { AuditLog } from '../../src/audit/log.ts';
import type { DatabaseAddress, DatabaseTarget } from '../../src/db/address.ts';
import { openDatabase } from '../../src/db/database.ts';
import { Intake } from '../../src/http/body/intake.ts';
import { Metrics } from '../../src/http/metrics.ts';
import { createHttpServer } from '../../src/http/server.ts';
import { createStreamBudget } from '../../src/http/streams/hub-options.ts';
import { StreamHub } from '../../src/http/streams/sse.ts';
import { registerKvCollectionRoutes } from '../../src/kv/collection-routes.ts';
import { createKv } from '../../src/kv/domain.ts';
import { rewriteKvUrl } from '../../src/kv/paths.ts';
import { registerKvRoutes } from '../../src/kv/routes.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { Credentials } from '../../src/tenancy/credentials.ts';
import { Secrets } from '../../src/tenancy/secrets.ts';
import { Sessions } from '../../src/tenancy/sessions.ts';
import { generousLimiter } from '../limits/limiter.ts';

const target = JSON.parse(process.env.BENCH_DATABASE ?? '') as DatabaseTarget;
const fastify = process.argv[2] === 'bare' ? bare() : await quarry(process.env.BENCH_SECRET ?? '');
console.log(await fastify.listen({ host: '127.0.0.1', port: 0 }));
// Without a handler, the signal would end the process before it writes a profile.
process.once('SIGTERM', () => process.exit());

/** The minimum that does the same: a point select and a durable upsert, both with a schema-serialised response. */
function bare() {
  const app = Fastify();
  const db =
    typeof target === 'string' ? postgres(target, { max: 10 }) : postgres({ ...target, max: 10, ...socketOf(target) });
  const entry = { type: 'object', properties: { key: { type: 'string' }, value: { type: 'string' } } };
  const response = { 200: entry };
  app.get('/kv/:key', { schema: { response } }, async (request) => {
    const [row] = await db`select key, value from bare_entries where key = ${(request.params as { key: string }).key}`;
    return row;
  });
  app.put('/kv/:key', { schema: { response } }, async (request) => {
    const { key } = request.params as { key: string };
    const { value } = request.body as { value: string };
    const [row] = await db`insert into bare_entries (key, value) values (${key}, ${value})
      on conflict (key) do update set value = excluded.value returning key, value`;
    return row;
  });
  app.post('/increment', { schema: { response } }, async (request) => {
    const { key } = request.body as { key: string };
    const [row] = await db`insert into bare_entries (key, value) values (${key}, '1')
      on conflict (key) do update set value = (bare_entries.value::bigint + 1)::text returning key, value`;
    return row;
  });
  app.post('/batch', async (request) => {
    const { entries } = request.body as { entries: { key: string; value: string }[] };
    // Sorted by key, because overlapping batches would otherwise deadlock.
    const sorted = entries.toSorted((a, b) => (a.key < b.key ? -1 : 1));
    await db`insert into bare_entries (key, value)
      select * from unnest(${sorted.map(({ key }) => key)}::text[], ${sorted.map(({ value }) => value)}::text[])
      on conflict (key) do update set value = excluded.value`;
    return { data: sorted.length };
  });
  const list = { type: 'object', properties: { data: { type: 'array', items: entry } } };
  app.get('/entries', { schema: { response: { 200: list } } }, async (request) => {
    const { prefix, limit } = request.query as { prefix: string; limit: string };
    const data = await db`select key, value from bare_entries
      where key >= ${prefix} and key < ${`${prefix}\u{10ffff}`} order by key limit ${Number(limit) + 1}`;
    return { data: data.slice(0, Number(limit)) };
  });
  // The same page with the members of Quarry's, so that its response has the same bytes.
  const time = { type: 'string', format: 'date-time' };
  const fullEntry = {
    type: 'object',
    properties: { user: { type: 'string' }, ...entry.properties, created_at: time, updated_at: time },
  };
  const fullList = {
    type: 'object',
    properties: { data: { type: 'array', items: fullEntry }, next_cursor: { type: 'string' } },
  };
  app.get('/full_entries', { schema: { response: { 200: fullList } } }, async (request) => {
    const { prefix, limit } = request.query as { prefix: string; limit: string };
    const rows = await db`select "user", key, value, created_at, updated_at from bare_full_entries
      where key >= ${prefix} and key < ${`${prefix}\u{10ffff}`} order by key limit ${Number(limit) + 1}`;
    const data = rows.slice(0, Number(limit));
    return { data, next_cursor: Buffer.from(data.at(-1)?.key ?? '').toString('base64url') };
  });
  return app;
}

/** postgres.js takes the path of the socket itself, not of its directory. */
function socketOf({ host, port }: DatabaseAddress) {
  return host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : {};
}

async function quarry(secret: string) {
  const db = openDatabase(target, { poolSize: 10, applicationName: 'bench' });
  const secrets = new Secrets(secret);
  const credentials = new Credentials({ db, secrets, clock: systemClock });
  const log = createLogger('info');
  const { fastify: app, api } = await createHttpServer({
    log,
    credentials,
    rateLimiter: generousLimiter(db),
    audit: new AuditLog({ db, directory: db, clock: systemClock, log, keep: 'changes' }),
    sessions: new Sessions({ db, directory: db, secrets, clock: systemClock, credentials }),
    metrics: new Metrics(),
    intake: new Intake({ clock: systemClock, memoryBytesMax: 256 * 1024 * 1024 }),
    bodyBytesMax: 1024 * 1024,
    corsOrigins: ['*'],
    contentOrigin: undefined,
    trustProxy: [],
    rewriteUrl: rewriteKvUrl,
  });
  const limits = { keyBytesMax: 1024, valueBytesMax: 1024 * 1024, userBytesMax: 64 * 1024 * 1024 };
  const { service: kv, watch: kvWatch } = createKv({ db, limits, streamSecondsMax: 3_600 });
  registerKvRoutes(api, { db, kv });
  const streams = new StreamHub({
    listenDatabase: db,
    log,
    streamSecondsMax: 3_600,
    budget: createStreamBudget({ streamsMax: 20_000, unreadBytesMax: 64 * 1024 * 1024 }),
  });
  registerKvCollectionRoutes(api, { db, kv, kvWatch, streams });
  return app;
}
