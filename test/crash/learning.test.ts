import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { externalDatabase } from '../support/cells-of-process.ts';
import { runQuarry } from '../support/command.ts';
import type { TestIngestion } from '../support/knowledge.ts';
import { sendRequest } from '../support/request.ts';
import { startServe } from '../support/serve.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-learning-'));
chmodSync(dataDir, 0o755);
after(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));

/** A killed training keeps its claim for 30 seconds, so this test runs only with `npm run crash`. */
const skip = process.env.CRASH_ROUNDS === undefined && 'it waits for claims to expire';
const rounds = 3;

test('a server killed while it learns from a source still finds what it found before, and learns after its start', {
  skip,
  timeout: 900_000,
}, async () => {
  const env = { QUARRY_DATA_DIR: dataDir, ...(await externalDatabase()).settings };
  let server = await startServe(env);
  const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  const call = <T>(method: string, path: string, body?: unknown) =>
    sendRequest<T>(server.baseUrl, method, `/api/v1${path}`, { key, ...(body === undefined ? {} : { body }) });
  const org = (await call<{ id: string }>('POST', '/orgs', { name: 'Crash' })).body.id;
  const source = (await call<{ id: string }>('POST', '/knowledge_sources', { type: 'knowledge/documents', org })).body
    .id;
  const search = async (query: string) => {
    const path = `/knowledge_sources/${source}/search`;
    type Found = { data: { title: string }[]; explain: { models?: { version: number }[] } };
    const found = await call<Found>('POST', path, { query, explain: true });
    assert.equal(found.status, 200, found.text);
    return { titles: found.body.data.map(({ title }) => title), version: found.body.explain.models?.[0]?.version ?? 0 };
  };
  const wait = () => new Promise((resolve) => setTimeout(resolve, 5));

  let documents = 0;
  let version = 0;
  for (let round = 0; round < rounds; round++) {
    // Each time, the source grows by more than half, so that a training is due.
    const more = documents === 0 ? 300 : Math.ceil(documents * 0.6);
    const items = Array.from({ length: more }, (_item, i) => ({
      content: {
        data: `Number${documents + i} ${subjects[i % 7]} ${'and then '.repeat(i % 40)} is about ${subjects[i % 3]}.`,
      },
      title: `number${documents + i}`,
    }));
    for (let from = 0; from < more; from += 100) {
      const body = { items: items.slice(from, from + 100) };
      const started = await call<TestIngestion>('POST', `/knowledge_sources/${source}/ingest/batch`, body);
      assert.equal(started.status, 201, started.text);
      for (let { status } = started.body; status !== 'succeeded'; await wait()) {
        assert.notEqual(status, 'failed');
        ({ status } = (await call<TestIngestion>('GET', `/knowledge_ingestions/${started.body.id}`)).body);
      }
    }
    documents += more;
    while (!isLearning(server.pid) && (await search('number7')).version === version) await wait();
    // A different moment of the training in each round.
    for (let i = 0; i < round * 20; i++) await wait();
    await server.kill();
    server = await startServe(env);
    const found = await search(`number${documents - 1}`);
    assert.equal(found.titles[0], `number${documents - 1}`);
    assert.ok(found.version >= version);
    // The claim of the killed training expires first.
    while ((await search('number7')).version === version) await new Promise((resolve) => setTimeout(resolve, 500));
    version = (await search('number7')).version;
  }
  const fsck = await runQuarry(['fsck'], { env });
  assert.equal(fsck.code, 0, fsck.stdout + fsck.stderr);
  assert.equal(await server.stop(), 0);
});

const subjects = ['rivers', 'mountains', 'harbours', 'gardens', 'railways', 'bridges', 'castles'];

/** Whether a child process of this process is training a model. */
function isLearning(pid: number): boolean {
  const all = execFileSync('ps', ['-eo', 'ppid=,args='], { encoding: 'utf8' });
  return all.split('\n').some((line) => line.trim().startsWith(`${pid} `) && line.includes('content/learn/worker'));
}
