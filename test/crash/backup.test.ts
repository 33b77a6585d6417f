import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openDatabase } from '../../src/db/database.ts';
import { findEmbeddedPostgres, killEmbeddedPostgres } from '../../src/db/embedded.ts';
import { graphOf, type Run } from '../support/automations.ts';
import { runQuarry } from '../support/command.ts';
import { type TestExtraction, waitForExtraction } from '../support/extractions.ts';
import { type FileBody, pixel } from '../support/files.ts';
import { htmlPage, startSite } from '../support/fixture-site.ts';
import { sendRequest } from '../support/request.ts';
import { startServe } from '../support/serve.ts';
import { until } from '../support/until.ts';

const root = mkdtempSync(join(tmpdir(), 'quarry-crash-backup-'));
chmodSync(root, 0o755);
after(() => rmSync(root, { recursive: true, force: true, maxRetries: 5 }));

const lean = {
  QUARRY_LOG_LEVEL: 'silent',
  QUARRY_PARSE_WORKERS: '1',
  QUARRY_FETCH_ALLOW: '127.0.0.1',
  QUARRY_CRAWL_CONCURRENCY: '1',
};
const writersCount = 4;
const filesBefore = 40;
const pagesCount = 6;

type Kept = { id: string; checksum: string };

/** The kept writes that were acknowledged. Files that a writer deletes again are not among them. */
class Acknowledged {
  readonly files: Kept[] = [];
  readonly entries = new Map<string, number>();
  stopped = false;
  readonly #reached: { count: number; resolve: () => void }[] = [];

  reached(count: number): Promise<void> {
    return new Promise((resolve) => this.#reached.push({ count, resolve }));
  }

  file(file: Kept): void {
    this.files.push(file);
    for (const { count, resolve } of this.#reached) if (this.files.length >= count) resolve();
  }
}

/** Uploads, deletes and counts up, one request after another, until it is stopped. */
async function write(baseUrl: string, key: string, user: string, name: string, acknowledged: Acknowledged) {
  for (let turn = 1; !acknowledged.stopped; turn++) {
    const bytes = randomBytes(20_000 + (turn % 7) * 30_000);
    const uploaded = await sendRequest<FileBody>(baseUrl, 'POST', '/api/v1/files/uploads', {
      key,
      body: bytes,
      headers: { 'content-type': 'x/y', 'x-filename': name },
    });
    assert.equal(uploaded.status, 201, uploaded.text);
    if (turn % 3 === 0) await sendRequest(baseUrl, 'DELETE', `/api/v1/files/${uploaded.body.id}`, { key });
    else acknowledged.file({ id: uploaded.body.id, checksum: createHash('sha256').update(bytes).digest('hex') });
    const put = await sendRequest(baseUrl, 'PUT', `/api/v1/kv/${name}`, { key, body: { user, value: String(turn) } });
    assert.equal(put.status, 200, put.text);
    acknowledged.entries.set(name, turn);
  }
}

test('a backup taken under load restores to a working server with everything that was acknowledged before', async () => {
  const [dataDir, restoredDir] = [join(root, 'a'), join(root, 'b')];
  const [backup, second] = [join(root, 'backup'), join(root, 'second')];
  const serve = await startServe({ ...lean, QUARRY_DATA_DIR: dataDir });
  const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  const post = async <T>(baseUrl: string, path: string, body: object = {}): Promise<T> => {
    const answer = await sendRequest<T>(baseUrl, 'POST', `/api/v1${path}`, { key, body });
    assert.ok(answer.status < 300, `${path}: ${answer.status} ${answer.text}`);
    return answer.body;
  };
  const user = await post<{ id: string }>(serve.baseUrl, '/users', { email: 'a@example.com', name: 'A' });

  // A run that waits, and a crawl that has reached its last page.
  const automation = await post<{ id: string }>(serve.baseUrl, '/automations', {
    name: 'waits',
    type: 'invoked',
    workflow: graphOf(
      { id: 'go', kind: 'wait_for_signal', name: 'go', on_success: 'done' },
      { id: 'done', kind: 'complete', result: { ok: true } },
    ),
  });
  await post(serve.baseUrl, `/automations/${automation.id}/activate`);
  const run = await post<Run>(serve.baseUrl, `/automations/${automation.id}/invoke`);
  const hold = Promise.withResolvers<void>();
  const site = await startSite({}, async (_request, response, url) => {
    const at = Number(url.pathname.slice(1) || 0);
    if (at === pagesCount - 1) await hold.promise;
    const links = at + 1 < pagesCount ? [`/${at + 1}`] : [];
    response.setHeader('content-type', 'text/html').end(htmlPage(`Page ${at}`, links));
  });
  try {
    const crawl = await post<TestExtraction>(serve.baseUrl, '/extractions', {
      ...{ destination_kind: 'storage', url: `${site.origin}/`, mode: 'site', sitemap: 'skip' },
    });
    await site.waitForRequest(`/${pagesCount - 1}`);

    const acknowledged = new Acknowledged();
    const enough = acknowledged.reached(filesBefore);
    const writers = Array.from({ length: writersCount }, (_, number) =>
      write(serve.baseUrl, key, user.id, `writer-${number}`, acknowledged),
    );
    await enough;
    const picture = { filename: 'a.png', content_type: 'image/png', data: pixel.toString('base64'), share: true };
    const shared = await post<FileBody>(serve.baseUrl, '/files', picture);
    const [files, entries] = [[...acknowledged.files], new Map(acknowledged.entries)];

    const taken = await runQuarry(['backup', backup, '--include-secret'], {
      env: { ...lean, QUARRY_DATA_DIR: dataDir },
    });
    assert.equal(taken.code, 0, taken.stderr);
    const later = acknowledged.files.length;
    assert.ok(later > files.length, 'writing continued meanwhile');
    acknowledged.stopped = true;
    await Promise.all(writers);
    await serve.kill();
    killEmbeddedPostgres(dataDir);
    hold.resolve();
    assert.equal(statSync(backup).mode & 0o777, 0o700);
    assert.equal(statSync(join(backup, 'secret')).mode & 0o777, 0o600);

    assert.equal((await runQuarry(['backup', 'verify', backup])).code, 0);
    const env = { ...lean, QUARRY_DATA_DIR: restoredDir };
    const restored = await runQuarry(['restore', backup], { env });
    assert.equal(restored.code, 0, restored.stderr);
    const again = await startServe(env);
    try {
      for (const { id, checksum } of files) {
        const { body } = await sendRequest<FileBody>(again.baseUrl, 'GET', `/api/v1/files/${id}`, { key });
        assert.equal(body.checksum, checksum);
        const bytes = Buffer.from(await (await fetch(body.url)).arrayBuffer());
        assert.equal(createHash('sha256').update(bytes).digest('hex'), checksum);
      }
      for (const [name, count] of entries) {
        const { body } = await sendRequest<{ value: string }>(
          again.baseUrl,
          'GET',
          `/api/v1/kv/${name}?user=${user.id}`,
          {
            key,
          },
        );
        assert.ok(Number(body.value) >= count, `${name} is ${body.value}, and ${count} was acknowledged`);
      }
      const share = new URL(shared.share_url ?? '');
      assert.equal((await fetch(`${again.baseUrl}${share.pathname}${share.search}`)).status, 200);

      const done = await waitForExtraction(again.baseUrl, key, crawl.id);
      assert.deepEqual([done.state, done.progress], ['done', { discovered: pagesCount, done: pagesCount, failed: 0 }]);
      await post(again.baseUrl, `/automation_runs/${run.id}/signal`, { name: 'go' });
      const stream = await fetch(`${again.baseUrl}/api/v1/automation_runs/${run.id}/stream`, {
        headers: { 'x-api-key': key },
      });
      assert.match(await stream.text(), /"status":"completed"/);

      const checked = await runQuarry(['fsck'], { env });
      assert.equal(checked.code, 0, checked.stdout);
      assert.match(checked.stdout, / 0 problems/);
      await killBackup(second, env);
    } finally {
      assert.equal(await again.stop(), 0);
    }
    // What the killed backup left behind is not a valid one.
    assert.ok(!existsSync(second));
    const refused = await runQuarry(['backup', 'verify', `${second}.unfinished`]);
    assert.match(refused.stderr, /not a complete backup|ENOENT/);
    assert.equal((await runQuarry(['backup', second], { env })).code, 0, 'the next backup removes it');
    assert.ok(!existsSync(`${second}.unfinished`));
  } finally {
    await site.close();
  }
});

/** Kills a backup beside a running server while it waits for the rows of a table. */
async function killBackup(directory: string, env: typeof lean & { QUARRY_DATA_DIR: string }): Promise<void> {
  const target = findEmbeddedPostgres(env.QUARRY_DATA_DIR);
  assert.ok(target !== undefined);
  const db = openDatabase(target, { poolSize: 2, applicationName: 'quarry-test' });
  const locked = await db.reserve();
  await locked.runScript('begin; lock table kv_entries in access exclusive mode');
  const killed = new AbortController();
  const dying = runQuarry(['backup', directory], { env, signal: killed.signal });
  await until(async () => {
    const waiting = await db`
      select 1 from pg_locks where relation = 'kv_entries'::regclass and not granted
        and database = (select oid from pg_database where datname = current_database())`;
    return waiting.length > 0 && existsSync(`${directory}.unfinished`);
  });
  killed.abort();
  await dying;
  locked.release();
  await db.end({ timeout: 5 });
}
