import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { after, test } from 'node:test';
import type { BlobStore } from '../../../src/blob/blob-store.ts';
import { sweepBlobs } from '../../../src/files/sweep.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* What deletes the contents of files decides first, deletes outside of every transaction, and records it last. */

const server = await startTestServer();
after(() => server.close());
const { api, db, provision, services } = server;
const app = await provision.app();
const key = app.secretKey;

/** A stored blob that is due for deletion. */
async function doom(name: string): Promise<string> {
  const blobKey = `${app.app.uuid}/${name}`;
  await services.blobs.put(blobKey, Buffer.from('x'), { contentType: 'text/plain' });
  await db`insert into doomed_blobs (app_id, blob_key) values (${app.app.uuid}, ${blobKey})`;
  return blobKey;
}

const record = async (blobKey: string) => (await db`select from doomed_blobs where blob_key = ${blobKey}`).count;
const isStored = async (blobKey: string) => (await services.blobs.stat(blobKey)) !== undefined;
/** Sessions that wait with an open transaction. */
const openTransactions = async () =>
  (await db`select from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`).count;

/** A store that begins to delete and waits. */
function holdRemovals() {
  const held = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const { blobs } = services;
  const removeNow = blobs.remove.bind(blobs);
  const remove: BlobStore['remove'] = async (blobKey) => {
    begun.resolve();
    await held.promise;
    await removeNow(blobKey);
  };
  return { remove, begun: begun.promise, release: held.resolve };
}

test('no transaction is open while a store deletes for a sweep', async () => {
  const blobKey = await doom('slow');
  const store = holdRemovals();
  const sweep = sweepBlobs({ db, blobs: { ...services.blobs, remove: store.remove } });
  await store.begun;
  assert.equal(await openTransactions(), 0);
  assert.equal((await sweepBlobs(services)).blobs, 0, 'another sweep leaves it out');
  store.release();
  assert.equal((await sweep).blobs, 1);
  assert.deepEqual([await isStored(blobKey), await record(blobKey)], [false, 0]);
});

test('no transaction is open while a store deletes for an erasure', async () => {
  const user = await provision.user(app);
  const body = { filename: 'a', content_type: 'text/plain', data: 'eA==' };
  assert.equal((await api('POST', '/api/v1/files', { token: user.token, body })).status, 201);
  const store = holdRemovals();
  const { remove } = services.blobs;
  services.blobs.remove = store.remove;
  try {
    const { body: erasure } = await api<{ id: string }>('POST', '/api/v1/erasures', { key, body: { user: user.id } });
    await store.begun;
    assert.equal(await openTransactions(), 0);
    store.release();
    const shown = () => api<{ status: string }>('GET', `/api/v1/erasures/${erasure.id}`, { key });
    await until(async () => (await shown()).body.status === 'done');
  } finally {
    store.release();
    services.blobs.remove = remove;
  }
});

test('a sweep that dies while the store deletes is repeated, and records nothing that changed meanwhile', async () => {
  const blobKey = await doom('dying');
  const dead = holdRemovals();
  const dying = sweepBlobs({ db, blobs: { ...services.blobs, remove: dead.remove } });
  await dead.begun;
  await db`update doomed_blobs set due_at = due_at - interval '61 minutes' where blob_key = ${blobKey}`;
  const second = holdRemovals();
  const repeated = sweepBlobs({ db, blobs: { ...services.blobs, remove: second.remove } });
  await second.begun;
  dead.release();
  await dying;
  assert.equal(await record(blobKey), 1, 'the second sweep still has it');
  second.release();
  assert.equal((await repeated).blobs, 1);
  assert.deepEqual([await isStored(blobKey), await record(blobKey)], [false, 0]);
});

test('a write whose contents a sweep has decided to delete makes no file', async () => {
  const writer = await provision.user(app);
  const writing = request(`${server.baseUrl}/api/v1/files/uploads`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${writer.token}`,
      'content-type': 'text/plain',
      'x-filename': 'late.txt',
      'transfer-encoding': 'chunked',
    },
  });
  const answered = once(writing, 'response');
  writing.write('first');
  const notes = () => db<{ blobKey: string }[]>`select blob_key from doomed_blobs where app_id = ${app.app.uuid}`;
  await until(async () => (await notes()).length === 1);
  await db`update doomed_blobs set due_at = now() where app_id = ${app.app.uuid}`;
  await sweepBlobs(services);
  writing.end('last');
  const [response] = await answered;
  response.resume();
  assert.equal(response.statusCode, 503);
  const { body: listed } = await api<{ data: { filename: string }[] }>('GET', '/api/v1/files', { key });
  assert.deepEqual(
    listed.data.filter(({ filename }) => filename === 'late.txt'),
    [],
  );
});
