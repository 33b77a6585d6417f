import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { operatorOf } from '../support/operator.ts';
import { type ErrorBody, startTestServer } from '../support/server.ts';

const server = await startTestServer();
const operator = await operatorOf(server);
after(async () => {
  await operator.close();
  await server.close();
});
const { app: created, secretKey: key } = await server.provision.app();
const app = created.id;
await server.db`update apps set name = 'My app' where id = ${created.uuid}`;

/** What the command prints, or the code that it ends with. */
async function quarry(...args: string[]): Promise<{ printed: string } | { code: number | null }> {
  const { code, stdout } = await operator.quarry(...args);
  return code === 0 ? { printed: stdout } : { code };
}

function upload(bytes: number) {
  const data = Buffer.alloc(bytes).toString('base64');
  const body = { filename: 'a', content_type: 'application/octet-stream', data };
  return server.api<ErrorBody>('POST', '/api/v1/files', { key, body });
}

test('the operator sets and removes the limit of an app while the server runs', async () => {
  assert.equal((await upload(10)).status, 201);
  const bounded = await quarry('quota', app, '--file-bytes', '15', '--json');
  assert.ok('printed' in bounded);
  assert.deepEqual(JSON.parse(bounded.printed).file_bytes, { used: 10, limit: 15 });
  const refused = await upload(6);
  assert.deepEqual([refused.status, refused.body.error.details.limit], [422, 15]);

  const lifted = await quarry('quota', app, '--file-bytes', 'none');
  assert.ok('printed' in lifted && /file_bytes +10 of no limit/.test(lifted.printed));
  assert.equal((await upload(6)).status, 201);
});

test('an unknown app or an invalid limit is an error', async () => {
  assert.deepEqual(await quarry('quota', 'garbage'), { code: 1 });
  assert.deepEqual(await quarry('quota', `dap_${'0'.repeat(22)}`), { code: 1 });
  assert.deepEqual(await quarry('quota', app, '--pages', '-5'), { code: 2 });
});

test('an app is named by its id or its name', async () => {
  assert.deepEqual(await quarry('quota', 'my APP'), await quarry('quota', app));
  assert.deepEqual(await quarry('quota', 'nobody'), { code: 1 });
});

test('fsck finds the books in order', async () => {
  const checked = await quarry('fsck');
  assert.ok('printed' in checked && !checked.printed.includes('usage'));
  assert.match(checked.printed, /^2 files and \d blobs? checked, 0 problems, 0 repaired$/m);
});
