import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { continueMove } from '../../../src/cells/move/move.ts';
import { runForEveryApp } from '../../../src/db/fences.ts';
import { sweepBlobs } from '../../../src/files/sweep.ts';
import { sweepKv } from '../../../src/kv/sweep.ts';
import { pairOf } from '../../support/cells/moves.ts';
import { createTestDatabase } from '../../support/database.ts';
import { htmlPage, startSite } from '../../support/fixture-site.ts';
import { startLanguageModel } from '../../support/language-model.ts';
import { startTestServer } from '../../support/server.ts';
import { startIssuer } from '../../support/token-issuer.ts';
import { until } from '../../support/until.ts';
import { resumeWork, useInstallation } from '../../support/upgrade/installation.ts';

/** A server for each of two cells, as one process that serves both. */
const model = await startLanguageModel();
model.script = () => 'Good day.';
const site = await startSite({
  '/': htmlPage('Harbour', ['/prices']),
  '/prices': htmlPage('Prices of the harbour'),
  '/hook': 'ok',
});
const issuer = await startIssuer(() => new Date(), 'https://quarry.example');
const env = {
  ...{ QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'small', QUARRY_FETCH_ALLOW: '127.0.0.0/8' },
  QUARRY_QUOTA_SANDBOXES: '100',
};
const source = await startTestServer({ env });
const database = await createTestDatabase();
const { dataDir } = source;
const { secret = '' } = source.services.config;
const target = await startTestServer({ env, installed: { ...database, dataDir, secret } });
after(async () => {
  await target.close();
  await source.close();
  await database.drop();
  await Promise.all([site.close(), issuer.close(), model.close()]);
});
const pair = await pairOf({ target: source.services.directTarget, db: source.db }, database);
const { directory } = pair;

const withoutAddresses = (body: unknown, baseUrl: string) =>
  JSON.parse(
    JSON.stringify(body)
      .replaceAll(baseUrl, 'http://server')
      .replaceAll(/(token|expires|signature)=[^"&]+/g, '$1=…'),
    // It is written some seconds after a use, such as these reads.
    (name, value) => (name === 'last_used_at' ? undefined : value),
  );

test('every resource of an app is the same in another cell, with its credentials, and its work continues', async () => {
  const app = await source.provision.app();
  const used = await useInstallation(source, app, { site: site.origin, issuer });
  const read = async (server: typeof source) => {
    const responses: Record<string, unknown> = {};
    for (const { as, path } of used.reads) {
      // Developers belong to the directory, which a server of one cell does not ask.
      if (path.startsWith('/protected/')) continue;
      const { status, body, text } = await server.api('GET', path, used.credentials[as] ?? {});
      assert.equal(status, 200, `${path}: ${text}`);
      responses[path] = withoutAddresses(body, server.baseUrl);
    }
    return responses;
  };
  // Nothing changes on its own meanwhile.
  await until(
    async () => (await source.db`select 1 from jobs where app_id = ${app.app.uuid} and run_at <= now()`).length === 0,
  );
  const before = await read(source);
  await pair.addMove(app.app.uuid);
  await continueMove({ directory, appId: app.app.uuid, sourceKeptMs: 0 });
  assert.deepEqual(await read(target), before);
  await resumeWork(target, used);
});

test('while an app is frozen its writes are 503 with Retry-After, and sweeps and other apps do not notice it', async () => {
  const [app, other] = [await source.provision.app(), await source.provision.app()];
  const [user, otherUser] = [await source.provision.user(app), await source.provision.user(other)];
  const put = (at: typeof source, { secretKey }: typeof app, id: string, key: string) =>
    at.api('PUT', `/api/v1/kv/${key}`, { key: secretKey, body: { value: 'x', user: id } });
  for (const [of, id] of [
    [app, user.id],
    [other, otherUser.id],
  ] as const) {
    assert.equal((await put(source, of, id, 'kept')).status, 200);
    assert.equal((await put(source, of, id, 'expired')).status, 200);
  }
  const file = await source.api<{ url: string }>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename: 'a.txt', content_type: 'text/plain', data: Buffer.from('contents').toString('base64') },
  });
  assert.equal(file.status, 201);
  const left = async (db: typeof source.db, { app: { uuid } }: typeof app) =>
    (await db<{ key: string }[]>`select key from kv_entries where app_id = ${uuid} order by 1`).map(({ key }) => key);
  await pair.addMove(app.app.uuid);
  await continueMove({
    directory,
    appId: app.app.uuid,
    sourceKeptMs: 0,
    async onPoint(point) {
      if (point !== 'frozen') return;
      const refused = await put(source, app, user.id, 'late');
      assert.equal(refused.status, 503, refused.text);
      assert.equal(refused.headers.get('retry-after'), '1');
      assert.equal((await put(source, other, otherUser.id, 'late')).status, 200);
      // Reads go on.
      const read = await source.api('GET', `/api/v1/kv/kept?user=${user.id}`, { key: app.secretKey });
      assert.equal(read.status, 200);
      for (const { db } of [source, target])
        await db.begin(async (tx) => {
          await tx`set local session_replication_role = replica`;
          await tx`update kv_entries set expires_at = '2026-01-01' where key = 'expired'`;
        });
      for (const { db } of [source, target]) {
        await runForEveryApp(() => sweepKv(db));
        assert.deepEqual(await left(db, app), ['expired', 'kept']);
      }
      assert.deepEqual(await left(source.db, other), ['kept', 'late']);
    },
  });
  // Neither the copy on the source nor its deletion has removed contents from the store that both cells share.
  for (const { db } of [source, target]) await runForEveryApp(() => sweepBlobs({ db, blobs: source.services.blobs }));
  // The signed URL from before the move still works.
  const contents = await fetch(file.body.url.replace(source.baseUrl, target.baseUrl));
  assert.equal(await contents.text(), 'contents');
  assert.equal((await put(target, app, user.id, 'next')).status, 200);
});
