import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { openDatabase } from '../../../src/db/database.ts';
import { migrate } from '../../../src/db/migrate.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { openPreviousRelease } from '../../support/upgrade/previous-release.ts';

/*
 * While a release is rolled out, processes of the one before it serve the new schema. QUARRY_TEST_PREVIOUS=all runs all
 * of its API tests; without it, a few files; the test below uses knowledge.
 */
const previous = await openPreviousRelease();
after(() => previous.close());

const representative = ['kv', 'files', 'automations', 'idempotency'];
const files =
  process.env.QUARRY_TEST_PREVIOUS === 'all'
    ? ['test/api/*.test.ts']
    : representative.map((name) => `test/api/${name}.test.ts`);

test(`API tests of ${previous.version} pass on the schema of this release`, { timeout: 1_200_000 }, async () => {
  const { code, output } = await previous.runTests(files);
  assert.equal(code, 0, output);
  assert.match(output, /ℹ pass \d{2,}|# pass \d{2,}/);
});

test('requests to old processes succeed during a migration, and old and new processes then serve together', async () => {
  const old = await previous.startServer();
  const { directTarget: target, config } = old.services;
  const db = openDatabase(target, { poolSize: 4, applicationName: 'quarry-test' });
  const user = await old.provision.user(await old.provision.app());
  const load = startLoad(old, user.token);
  let current: TestServer | undefined;
  try {
    await load.rounds(3);
    assert.ok((await migrate(db)).length > 0, 'the previous release had fewer migrations');
    await load.rounds(3);
    const installed = { target, db, dataDir: old.dataDir, secret: config.secret ?? '' };
    const started = await startTestServer({ installed });
    current = started;
    await load.rounds(3);
    assert.equal((await started.api('GET', '/readyz')).status, 200);
    // 0.1.0 only accepts its own schema there; later releases stay ready.
    assert.equal((await old.api('GET', '/readyz')).status, previous.version === '0.1.0' ? 503 : 200);

    for (const [writer, reader] of [
      [old, started],
      [started, old],
    ] as const) {
      // The writer, or the other process, ingests the text.
      const asUser = { token: user.token };
      const { createSource, push } = knowledgeOf(writer, asUser);
      const source = await createSource({ user: user.id });
      const document = await push(source, 'The harbour opens at nine.');
      const found = await knowledgeOf(reader, asUser).search(source, { query: 'harbour' });
      assert.equal(found[0]?.document, document);
    }
    assert.deepEqual(await load.stop(), [], 'a request to the old process failed');
  } finally {
    await load.stop();
    await current?.close();
    await old.close();
    await db.end();
  }
});

/** Writes and reads entries through one server, four requests at a time, until it is stopped. */
function startLoad(server: TestServer, token: string) {
  const failed: string[] = [];
  let isStopped = false;
  let done = 0;
  const loops = Array.from({ length: 4 }, async (_, loop) => {
    for (let round = 0; !isStopped; round++) {
      const path = `/api/v1/kv/load-${loop}`;
      const put = await server.api('PUT', path, { token, body: { value: String(round) } });
      const got = await server.api<{ value: unknown }>('GET', path, { token });
      if (put.status >= 300 || got.body.value !== String(round)) failed.push(`${put.text} ${got.text}`);
      done++;
    }
  });
  return {
    /** Waits until every loop has probably made so many more rounds. */
    rounds: (count: number, from = done) => until(() => done >= from + 4 * count),
    async stop() {
      isStopped = true;
      await Promise.all(loops);
      return failed;
    },
  };
}
