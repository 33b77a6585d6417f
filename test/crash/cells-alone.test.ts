import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { parseId } from '../../src/lib/ids.ts';
import { checkLedger, createFixture, Ledger, startActors } from '../support/crash-ledger.ts';
import { createTestDatabase } from '../support/database.ts';
import { startFragileDatabase } from '../support/fragile-database.ts';
import { type ApiOptions, sendRequest } from '../support/request.ts';
import { startServe } from '../support/serve.ts';
import { startWatch } from '../support/speed.ts';
import { openTcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';

/*
 * A server with a directory and two cells, each with an app under mixed load. The database of one cell, or of the
 * directory, is in trouble at a time, and the apps whose own database works must not notice it.
 */

/** Most of the time, the tests wait until what a silent database does not do has failed. */
const pauseMs = 150;
const root = mkdtempSync(join(tmpdir(), 'quarry-cells-alone-'));
chmodSync(root, 0o755);
const home = await startFragileDatabase(join(root, 'home'));
/** As in full-cluster.test.ts, `npm run prove` fills disks. */
const fillsDisks = Number(process.env.FULL_DISKS ?? 0) > 0 && process.getuid?.() === 0;
const away = await startFragileDatabase(join(root, 'away'), { isSmall: fillsDisks });
const here = await createTestDatabase();
const proxy = await openTcpProxy(here.target);
const cells = [
  { name: 'here', database_url: proxy.url },
  { name: 'away', database_url: away.url },
];
const env = {
  ...{ DATABASE_URL: home.url, QUARRY_DATA_DIR: join(root, 'data'), QUARRY_LOG_LEVEL: 'silent' },
  ...{ QUARRY_SECRET: '71d0c5a98e2f4b63a7c8159de0b4f326', QUARRY_CELLS: JSON.stringify({ cells }) },
  ...{ QUARRY_DB_POOL: '4', QUARRY_DB_TIMEOUT_SECONDS: '10' },
};
let server = await startServe(env);
after(async () => {
  await server.kill();
  await proxy.close();
  await Promise.all([home.close(), away.close(), here.drop()]);
  rmSync(root, { recursive: true, force: true, maxRetries: 5 });
});

const { developer_token: token = '', ...first } = JSON.parse(
  readFileSync(join(root, 'data', 'credentials.json'), 'utf8'),
) as Record<string, string>;
const developerApps = '/protected/api/v1/developer/apps';
const send = <T = { id: string }>(method: string, path: string, options: ApiOptions) =>
  sendRequest<T>(server.baseUrl, method, path, options);

/** An app under load in one of the cells. */
class Tenant {
  readonly key: string;
  readonly ledger = new Ledger();
  #fixture: Awaited<ReturnType<typeof createFixture>> | undefined;
  #isOver = false;
  #actors: Promise<unknown> | undefined;

  constructor(key: string) {
    this.key = key;
  }

  readonly connection = () => ({ baseUrl: server.baseUrl, key: this.key });

  async start(): Promise<void> {
    this.#fixture ??= await createFixture(this.connection());
    this.#isOver = false;
    this.#actors = startActors(this.connection, this.#fixture, this.ledger, () => this.#isOver, { pauseMs }).finally(
      () => {
        this.#isOver = true;
      },
    );
    // If it fails, the wait for all actors below throws.
    this.#actors.catch(() => {});
    await this.acknowledge(20);
  }

  /** Waits until so many further writes were acknowledged. */
  async acknowledge(count: number): Promise<void> {
    const enough = this.ledger.acknowledged + count;
    await this.reach(() => this.ledger.acknowledged >= enough);
  }

  async reach(isReached: () => boolean): Promise<void> {
    await until(() => this.#isOver || isReached());
    if (this.#isOver) await this.#actors;
  }

  /** Ends the load: every acknowledged write is there, and every job ends. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#actors;
    await this.check();
  }

  async check(): Promise<void> {
    if (this.#fixture !== undefined) await checkLedger(this.connection(), this.#fixture, this.ledger, 'new');
  }
}

const created = await send('POST', developerApps, { token, body: { name: 'Second' } });
const made = await send<{ full_key: string }>('POST', `${developerApps}/${created.body.id}/keys`, {
  ...{ token, body: { type: 'secret' } },
});
const places = await send<{ data: { id: string }[] }>('GET', developerApps, { token });
assert.equal(places.body.data.length, 2);
const [ours] = await here.db<{ id: string }[]>`select id from apps`;
const isFirstHere = parseId('app', first.app ?? '') === ours?.id;
const keys = [first.secret_key ?? '', made.body.full_key];
const tenants = {
  here: new Tenant(keys[isFirstHere ? 0 : 1] ?? ''),
  away: new Tenant(keys[isFirstHere ? 1 : 0] ?? ''),
};

const both = [tenants.here, tenants.away];
const startBoth = () => Promise.all(both.map((tenant) => tenant.start()));

for (const [what, begin] of Object.entries({ ...away.troubles, ...(fillsDisks ? { full: away.fill } : {}) }))
  test(`while the database of a cell is ${what}, apps of the other cell notice nothing, and its own lose nothing`, async (context) => {
    await startBoth();
    const refused = tenants.away.ledger.retries;
    const end = await begin();
    try {
      await tenants.away.reach(() => tenants.away.ledger.retries >= refused + 6);
      const watch = startWatch();
      await tenants.here.acknowledge(100);
      await tenants.here.stop();
      context.diagnostic(`100 writes of the other cell and their jobs took ${Math.round(watch.passedMs())} ms`);
    } finally {
      await end();
    }
    assert.equal(tenants.here.ledger.retries, 0, tenants.here.ledger.lastRetry);
    await tenants.away.acknowledge(20);
    await tenants.away.stop();
  });

for (const [what, begin] of Object.entries(home.troubles))
  test(`while the database of the directory is ${what}, apps whose place is known notice nothing`, async () => {
    await startBoth();
    const retries = both.map(({ ledger }) => ledger.retries);
    const end = await begin();
    try {
      if (what === 'killed' || what === 'paused')
        await until(async () => (await send('GET', developerApps, { token })).status === 503);
      for (const tenant of both) await tenant.acknowledge(100);
      for (const tenant of both) await tenant.stop();
    } finally {
      await end();
    }
    assert.deepEqual(
      both.map(({ ledger }) => ledger.retries),
      retries,
    );
    await until(async () => (await send('POST', developerApps, { token, body: { name: 'After' } })).status === 201);
  });

test('a server stops in order while a cell is paused, and starts without that cell, which it serves once it is back', async () => {
  await startBoth();
  const end = await away.troubles.paused();
  try {
    await tenants.here.stop();
    assert.equal(await server.stop(), 0);
    server = await startServe(env);
    await until(async () => (await send('GET', '/api/v1/orgs', { key: tenants.here.key })).status === 200);
    await tenants.here.check();
    const refused = await send('GET', '/api/v1/orgs', { key: tenants.away.key });
    assert.equal(refused.status, 503, refused.text);
    assert.ok(Number(refused.headers.get('retry-after')) > 0);
    assert.equal((await send('GET', developerApps, { token })).status, 200);
  } finally {
    await end();
  }
  await until(async () => (await send('GET', '/api/v1/orgs', { key: tenants.away.key })).status === 200);
  await tenants.away.stop();
});
