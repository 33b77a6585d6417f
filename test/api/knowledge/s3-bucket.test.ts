import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { openS3Objects } from '../../../src/blob/s3.ts';
import { startSite } from '../../support/fixture-site.ts';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { startS3Server } from '../../support/s3-server.ts';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const s3 = await startS3Server();
const objects = openS3Objects(s3.options, '');
after(async () => {
  await server.close();
  await objects.close();
  await s3.stop();
});
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const credentials = { access_key_id: 'test', secret_access_key: 'test' };

const put = (key: string, text: string) =>
  objects.put(key, Buffer.from(text), { contentType: 'application/octet-stream' });

const createSource = (payload: Json, more: Json = { credentials }) =>
  app.createSource({
    ...{ org: world.org.id, type: 's3/bucket' },
    payload: { bucket: 'blobs', url: s3.options.endpoint, ...payload },
    ...more,
  });

const pull = (source: string, body: Json = {}) => app.ingest(source, { pull: true, ...body });

async function keys(source: string): Promise<string[]> {
  type Listed = { data: { external_id: string }[] };
  const { body } = await app.send<Listed>('GET', `/knowledge_documents?source=${source}&page_size=100`);
  return body.data.map((each) => each.external_id).sort();
}

test('the objects below a prefix are read, then only what has changed, and deletions are followed', async () => {
  await put('docs/a.md', 'Ants are small.');
  await put('docs/b c.md', 'Bees make honey.');
  await put('docs/d.md', 'Dragonflies hover.');
  await put('other/e.md', 'Not this one.');
  const source = await createSource({ prefix: 'docs/' });
  const first = await pull(source);
  assert.deepEqual([first.status, first.stats.documents], ['succeeded', 3], JSON.stringify(first));
  assert.deepEqual(await keys(source), ['docs/a.md', 'docs/b c.md', 'docs/d.md']);
  assert.equal((await app.search(source, 'honey'))[0]?.title, 'b c.md');
  const same = await pull(source);
  assert.deepEqual([same.stats.documents, same.stats.unchanged], [0, 3]);
  await put('docs/a.md', 'Ants are very strong.');
  await objects.remove('docs/d.md');
  const changed = await pull(source);
  assert.deepEqual([changed.stats.documents, changed.stats.unchanged, changed.stats.removed], [1, 1, 1]);
  assert.match((await app.search(source, 'ants'))[0]?.content ?? '', /strong/);
});

test('an empty listing deletes nothing until a person confirms it', async () => {
  await put('empty/a.md', 'One.');
  const source = await createSource({ prefix: 'empty/' });
  await pull(source);
  await objects.remove('empty/a.md');
  const held = await pull(source);
  assert.deepEqual([held.stats.removed, held.metadata.deletions_held], [0, 1]);
  assert.equal((await pull(source, { confirm_deletions: true })).stats.removed, 1);
  assert.deepEqual(await keys(source), []);
});

/** The same server, whose listings have two objects on each page. */
async function startSmallPages(): Promise<string> {
  const proxy = createServer((incoming, response) => {
    const url = new URL(incoming.url ?? '', s3.options.endpoint);
    if (url.searchParams.has('list-type')) url.searchParams.set('max-keys', '2');
    const onward = request(url, { headers: incoming.headers }, (found) => {
      response.writeHead(found.statusCode ?? 500, found.headers);
      found.pipe(response);
    });
    onward.end();
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  proxy.unref();
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

test('a bucket that grows past its bound keeps all documents of its source', async () => {
  const url = await startSmallPages();
  for (const name of ['y', 'z']) await put(`grown/${name}.md`, `Text ${name}.`);
  const source = await createSource({ url, prefix: 'grown/', max_files: 4 });
  assert.equal((await pull(source)).stats.documents, 2);
  // They fill the first pages of the listing, so the pull ends before it has seen the others.
  for (const name of ['a', 'b', 'c', 'd']) await put(`grown/${name}.md`, `Text ${name}.`);
  const large = await pull(source);
  assert.deepEqual([large.status, large.error?.code, large.stats.removed], ['failed', 'repository_too_large', 0]);
  const all = ['a', 'b', 'c', 'd', 'y', 'z'].map((name) => `grown/${name}.md`);
  assert.deepEqual(await keys(source), all);
  const raised = { payload: { bucket: 'blobs', url, prefix: 'grown/', max_files: 6 } };
  assert.equal((await app.send('PATCH', `/knowledge_sources/${source}`, raised)).status, 200);
  const whole = await pull(source);
  assert.deepEqual([whole.status, whole.stats.removed, whole.stats.unchanged], ['succeeded', 0, 6]);
  assert.deepEqual(await keys(source), all);
});

test('a bucket that is missing, too large or on a host that must not be reached fails and deletes nothing', async () => {
  for (const name of ['1', '2']) await put(`many/${name}.md`, `Text ${name}.`);
  const grown = await createSource({ prefix: 'many/', max_files: 2 });
  assert.equal((await pull(grown)).status, 'succeeded');
  const missing = await pull(await createSource({ bucket: 'nothing-here' }));
  assert.deepEqual([missing.status, missing.error?.code], ['failed', 'fetch_failed'], JSON.stringify(missing));
  // One object is gone, and too many are new.
  await objects.remove('many/1.md');
  for (const name of ['3', '4']) await put(`many/${name}.md`, `Text ${name}.`);
  const large = await pull(grown);
  assert.deepEqual([large.status, large.error?.code], ['failed', 'repository_too_large']);
  assert.match(large.error?.message ?? '', /Raise max_files/);
  assert.deepEqual((await keys(grown)).slice(0, 2), ['many/1.md', 'many/2.md']);
  const body = { org: world.org.id, type: 's3/bucket', payload: { bucket: 'blobs', url: 'http://10.0.0.1' } };
  assert.equal((await app.send('POST', '/knowledge_sources', body)).status, 422);
});

test('a listing that never ends, and keys that no bucket has, are bounded', async () => {
  const long = `${'k'.repeat(5_000)}.md`;
  const listings = new Map([
    ['endless', listing('', true)],
    ['folders', listing('<Contents><Key>folder/</Key></Contents>', true)],
    ['long', listing(`<Contents><Key>${long}</Key><Size>4</Size><ETag>${'e'.repeat(5_000)}</ETag></Contents>`)],
  ]);
  const site = await startSite({}, (_request, response, url) =>
    response.end(url.searchParams.has('list-type') ? listings.get(url.pathname.split('/')[1] ?? '') : 'Text'),
  );
  for (const bucket of ['endless', 'folders']) {
    const ended = await pull(await createSource({ bucket, url: site.origin, max_files: 5 }));
    assert.deepEqual([ended.status, ended.error?.code], ['failed', 'repository_too_large'], bucket);
  }
  const source = await createSource({ bucket: 'long', url: site.origin });
  const first = await pull(source);
  assert.deepEqual([first.status, first.stats.documents], ['succeeded', 1], JSON.stringify(first));
  assert.deepEqual([(await pull(source)).stats.unchanged, (await keys(source))[0]?.length], [1, 71]);
  await site.close();
});

function listing(contents: string, isTruncated = false): string {
  const more = isTruncated ? '<NextContinuationToken>more</NextContinuationToken>' : '';
  return `<?xml version="1.0"?><ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>${more}${contents}</ListBucketResult>`;
}
