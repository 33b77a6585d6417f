import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { startGitServer } from '../../support/git-server.ts';
import { type Json, knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const repositories: { close(): void }[] = [];
after(async () => {
  await server.close();
  for (const repository of repositories) repository.close();
});
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });

async function startRepository(access: Parameters<typeof startGitServer>[0] = {}) {
  const repository = await startGitServer(access);
  repositories.push(repository);
  return repository;
}

const createSource = (url: string, more: Json = {}, body: Json = {}) =>
  app.createSource({ org: world.org.id, type: 'git/repository', payload: { url, ...more }, ...body });

async function pull(source: string, body: Json = {}) {
  const ended = await app.ingest(source, { pull: true, ...body });
  return { ...ended.stats, status: ended.status, error: ended.error, metadata: ended.metadata } as Json & {
    status: string;
    error?: { code: string; message: string };
    metadata: Json;
  };
}

async function paths(source: string): Promise<string[]> {
  type Listed = { data: { external_id: string }[] };
  const { body } = await app.send<Listed>('GET', `/knowledge_documents?source=${source}&page_size=100`);
  return body.data.map((each) => each.external_id).sort();
}

test('a branch is read, then only what has changed; an unchanged one costs at most 64 KiB', async (t) => {
  const repository = await startRepository();
  repository.commit({
    'README.md': '# Otters\n\nOtters hold hands.',
    'docs/rivers.md': 'Rivers flow downhill.',
    'docs/lakes.md': 'Lakes are still.',
    'src/main.ts': 'export const answer = 42;',
    'assets/big.txt': 'x'.repeat(3_000_000),
  });
  const source = await createSource(repository.url, { include_paths: ['*.md', 'src/*'], exclude_paths: ['*lakes*'] });
  const first = await pull(source);
  assert.deepEqual([first.status, first.documents], ['succeeded', 3], JSON.stringify(first));
  assert.deepEqual(await paths(source), ['README.md', 'docs/rivers.md', 'src/main.ts']);
  assert.equal((await app.search(source, 'otters hands'))[0]?.title, 'README.md');

  repository.traffic.sent = 0;
  const unchanged = await pull(source);
  assert.deepEqual([unchanged.documents, unchanged.unchanged, unchanged.removed], [0, 3, 0]);
  t.diagnostic(`an unchanged pull received ${repository.traffic.sent} bytes`);
  assert.ok(repository.traffic.sent <= 64 * 1024, String(repository.traffic.sent));

  repository.commit({
    'docs/rivers.md': 'Rivers flow to the sea.',
    'docs/seas.md': 'Seas are salty.',
    'src/main.ts': null,
  });
  const changed = await pull(source);
  assert.deepEqual([changed.documents, changed.unchanged, changed.removed], [2, 1, 1]);
  assert.deepEqual(await paths(source), ['README.md', 'docs/rivers.md', 'docs/seas.md']);
  assert.match((await app.search(source, 'rivers'))[0]?.content ?? '', /to the sea/);
  assert.deepEqual(readdirSync(join(server.dataDir, 'repositories')), []);
});

test('a pull that would delete over half of a source deletes nothing and waits for a person', async () => {
  const repository = await startRepository();
  repository.commit({ 'a.md': 'A.', 'b.md': 'B.', 'c.md': 'C.', 'd.md': 'D.' });
  const source = await createSource(repository.url);
  await pull(source);
  repository.commit({ 'a.md': null, 'b.md': null, 'c.md': null });
  const held = await pull(source);
  assert.deepEqual([held.status, held.removed, held.metadata.deletions_held], ['succeeded', 0, 3]);
  assert.equal((await paths(source)).length, 4);
  type Shown = { held_deletions: { documents: number; of: number } | null };
  const shown = await app.send<Shown>('GET', `/knowledge_sources/${source}`);
  assert.deepEqual([shown.body.held_deletions?.documents, shown.body.held_deletions?.of], [3, 4]);
  assert.equal((await pull(source)).removed, 0);
  const confirmed = await pull(source, { confirm_deletions: true });
  assert.equal(confirmed.removed, 3, JSON.stringify(confirmed));
  assert.deepEqual(await paths(source), ['d.md']);
  assert.equal((await app.send<Shown>('GET', `/knowledge_sources/${source}`)).body.held_deletions, null);
  repository.commit({ 'd.md': null });
  assert.equal((await pull(source)).metadata.deletions_held, 1);
});

test('a repository beyond the bounds ends with repository_too_large and deletes nothing', async () => {
  const repository = await startRepository();
  repository.commit({ 'a.md': 'A.', 'b.md': 'B.' });
  const source = await createSource(repository.url, { max_files: 3 });
  assert.equal((await pull(source)).documents, 2);
  repository.commit({ 'a.md': null, 'c.md': 'C.', 'd.md': 'D.', 'e.md': 'E.' });
  const refused = await pull(source);
  assert.deepEqual([refused.status, refused.error?.code], ['failed', 'repository_too_large']);
  assert.deepEqual(await paths(source), ['a.md', 'b.md']);
  assert.match(refused.error?.message ?? '', /Raise max_files/);

  const small = await createSource(repository.url, { max_megabytes: 1 });
  assert.equal((await pull(small)).documents, 4);
  const before = await paths(small);
  // Random bytes do not compress.
  repository.commit({ 'b.md': null, 'noise.txt': randomBytes(3_000_000).toString('base64') });
  const exceeded = await pull(small);
  assert.deepEqual([exceeded.status, exceeded.error?.code], ['failed', 'repository_too_large']);
  assert.match(exceeded.error?.message ?? '', /Raise max_megabytes/);
  assert.deepEqual(await paths(small), before);
});

test('a file of more than 100 MiB fails alone, and is not fetched again until it changes', async () => {
  const repository = await startRepository();
  repository.commit({ 'a.md': 'A.', 'huge.txt': 'x'.repeat(100 * 1024 * 1024 + 1) });
  const blob = repository.git('rev-parse', 'HEAD:huge.txt').trim();
  const source = await createSource(repository.url);
  const failed = { url: 'huge.txt', code: 'file_too_large' };
  const errorsOf = (pulled: Json) => (pulled.errors as (typeof failed)[]).map(({ url, code }) => ({ url, code }));
  const first = await pull(source);
  assert.deepEqual([first.status, first.documents, errorsOf(first)], ['succeeded', 1, [failed]]);
  assert.ok(repository.traffic.asked.includes(blob));
  repository.commit({ 'b.md': 'B.' });
  repository.traffic.asked = '';
  const second = await pull(source);
  assert.deepEqual([second.status, second.documents, errorsOf(second)], ['succeeded', 1, [failed]]);
  assert.ok(!repository.traffic.asked.includes(blob));
  repository.commit({ 'huge.txt': 'It has become small.' });
  assert.equal((await pull(source)).documents, 1);
  assert.deepEqual(await paths(source), ['a.md', 'b.md', 'huge.txt']);
});

test('files of which many fit one request are in memory one at a time', async (t) => {
  const repository = await startRepository();
  const size = 16 * 1024 * 1024;
  // Archives are refused by their first bytes.
  for (let i = 0; i < 12; i++) repository.commit({ [`${i}.rar`]: `Rar!${'\0'.repeat(size - i)}` });
  const source = await createSource(repository.url);
  const before = process.memoryUsage.rss();
  let most = before;
  const looks = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 5);
  const read = await pull(source).finally(() => clearInterval(looks));
  assert.equal((read.errors as Json[]).length, 12, JSON.stringify(read));
  const grown = most - before;
  t.diagnostic(`the process grew by ${Math.round(grown / 1024 / 1024)} MiB`);
  assert.ok(grown < 5 * size, `the process grew by ${Math.round(grown / 1024 / 1024)} MiB`);
});

test('a host that sends little and means much ends with repository_too_large', async () => {
  const tooLarge = async (url: string, more: Json = {}) => {
    const refused = await pull(await createSource(url, more));
    assert.deepEqual([refused.status, refused.error?.code], ['failed', 'repository_too_large'], refused.error?.message);
    return refused.error?.message ?? '';
  };
  const nested = await startRepository();
  nested.commit({ 'a.md': 'A.' });
  let tree = nested.git('rev-parse', 'HEAD^{tree}').trim();
  for (let depth = 0; depth < 12; depth++) {
    const entries = Array.from({ length: 10 }, (_, i) => `040000 tree ${tree}\t${i}\n`).join('');
    tree = nested.git.withInput(entries, 'mktree').trim();
  }
  nested.git('reset', '--soft', nested.git('commit-tree', '-m', 'Nested', tree).trim());
  assert.match(await tooLarge(nested.url, { include_paths: ['none'] }), /more than 2000000 files/);

  const long = await startRepository();
  long.commit({ 'a.md': 'A.' });
  const blob = long.git('rev-parse', 'HEAD:a.md').trim();
  tree = long.git.withInput(`100644 blob ${blob}\t${'n'.repeat(10_000_000)}\n`, 'mktree').trim();
  long.git('reset', '--soft', long.git('commit-tree', '-m', 'Long', tree).trim());
  assert.match(await tooLarge(long.url), /A path/);

  const packed = await startRepository({ compresses: true });
  packed.git('config', 'pack.compression', '0');
  packed.git('config', 'core.compression', '0');
  packed.commit({ 'zeros.txt': '0'.repeat(30_000_000) });
  assert.match(await tooLarge(packed.url, { max_megabytes: 1 }), /Raise max_megabytes/);
  assert.ok(packed.traffic.sent > 2_000_000, `${packed.traffic.sent} bytes before their compression`);

  const named = await startRefs(Array.from({ length: 100_000 }, (_, i) => `refs/x/${i}/HEAD`));
  assert.match(await tooLarge(named.url), /names/);
});

/** A host that lists these names, compressed. */
async function startRefs(names: string[]) {
  const line = (text: string) => `${(text.length + 4).toString(16).padStart(4, '0')}${text}`;
  const listed = names.map((name, i) => line(`${'a'.repeat(40)} ${name}${i === 0 ? '\0' : ''}\n`));
  const body = gzipSync(`${line('# service=git-upload-pack\n')}0000${listed.join('')}0000`);
  const host = createServer((_request, response) => {
    const type = 'application/x-git-upload-pack-advertisement';
    response.writeHead(200, { 'content-type': type, 'content-encoding': 'gzip' }).end(body);
  });
  host.listen(0, '127.0.0.1');
  await once(host, 'listening');
  repositories.push(host);
  return { url: `http://127.0.0.1:${(host.address() as AddressInfo).port}/repository` };
}

test('credentials reach the repository, wrong ones and missing branches are told apart, and redirects get none', async () => {
  const header = `Basic ${Buffer.from('x-access-token:s3cret').toString('base64')}`;
  const repository = await startRepository({ authorization: header });
  repository.commit({ 'a.md': 'A.' });
  const credentials = { token: 's3cret' };
  const source = await createSource(repository.url, {}, { credentials });
  assert.equal((await pull(source)).documents, 1);
  const wrong = await pull(await createSource(repository.url, {}, { credentials: { token: 'guess' } }));
  assert.deepEqual(
    [wrong.error?.code, wrong.error?.message],
    ['fetch_failed', 'The repository needs other credentials.'],
  );
  const none = await pull(await createSource(repository.url, { branch: 'none' }, { credentials }));
  assert.equal(none.error?.message, 'There is no such branch.');
  repository.traffic.headers.length = 0;
  const moved = await pull(await createSource(repository.url.replace('/repository', '/moved'), {}, { credentials }));
  assert.equal(moved.status, 'failed');
  assert.equal(repository.traffic.headers.length, 1);
});

test('a repository may not be on a host that the server must not reach, nor a branch an option', async () => {
  const refuse = async (payload: Json) => {
    const body = { org: world.org.id, type: 'git/repository', payload };
    return (await app.send('POST', '/knowledge_sources', body)).status;
  };
  assert.equal(await refuse({ url: 'ssh://example.com/a' }), 422);
  assert.equal(await refuse({ url: 'http://10.0.0.1/a' }), 422);
  assert.equal(await refuse({ url: 'https://example.com/a', branch: '--upload-pack=x' }), 422);
  const plain = await pull(await createSource('http://example.com/a'));
  assert.equal(plain.error?.code, 'unsafe_url');
});
