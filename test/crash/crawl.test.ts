import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { killEmbeddedPostgres } from '../../src/db/embedded.ts';
import { externalDatabase } from '../support/cells-of-process.ts';
import { outputText, type TestExtraction, waitForExtraction } from '../support/extractions.ts';
import { htmlPage, startSite } from '../support/fixture-site.ts';
import { startServe } from '../support/serve.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-crawl-'));
chmodSync(dataDir, 0o755);
after(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));

/** A box that all pages have, and that only the start page may keep. */
const repeated = '<div><p>Every summer we teach beginners to sail on the lake, in small groups.</p></div></main>';

/** Set CRASH_ROUNDS for a longer test. */
const rounds = Number(process.env.CRASH_ROUNDS ?? 1);
const pagesCount = 60;
const concurrency = 4;
const { settings } = await externalDatabase();
const env = {
  ...settings,
  QUARRY_DATA_DIR: dataDir,
  QUARRY_LOG_LEVEL: 'silent',
  QUARRY_FETCH_ALLOW: '127.0.0.1',
  QUARRY_CRAWL_CONCURRENCY: String(concurrency),
  QUARRY_PARSE_WORKERS: '1',
};

test('a crawl resumes by itself after every process was killed, and ends with every page exactly once', async () => {
  let serve = await startServe(env);
  const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  for (let round = 0; round < rounds; round++) {
    const site = await startSite({}, (_request, response, url) => {
      const at = url.pathname === '/' ? 0 : Number(url.pathname.slice(3));
      const links = [2 * at + 1, 2 * at + 2].filter((next) => next < pagesCount).map((next) => `/p/${next}`);
      response.setHeader('content-type', 'text/html').end(htmlPage(`Page ${at}`, links).replace('</main>', repeated));
    });
    try {
      const answer = await fetch(`${serve.baseUrl}/api/v1/extractions`, {
        method: 'POST',
        headers: { 'x-api-key': key, 'content-type': 'application/json' },
        body: JSON.stringify({ destination_kind: 'storage', url: `${site.origin}/`, mode: 'site', sitemap: 'skip' }),
      });
      assert.equal(answer.status, 202);
      const { id } = (await answer.json()) as TestExtraction;
      // A page in the middle, a different one each round.
      await site.waitForRequest(`/p/${6 + (((round + 2) * 7) % 45)}`);
      await serve.kill();
      killEmbeddedPostgres(dataDir);
      const before = site.requests.length;
      serve = await startServe(env);
      const done = await waitForExtraction(serve.baseUrl, key, id);
      assert.equal(done.state, 'done');
      assert.deepEqual(done.progress, { discovered: pagesCount, done: pagesCount, failed: 0 });
      assert.equal(done.outputs.length, pagesCount);
      assert.equal(new Set(done.outputs.map((output) => output.source_url)).size, pagesCount);
      for (const output of done.outputs) {
        const isStart = output.source_url === `${site.origin}/`;
        assert.equal((await outputText(output)).includes('teach beginners'), isStart, output.source_url);
      }
      assert.deepEqual(
        done.outputs.map((output) => output.ordinal),
        Array.from({ length: pagesCount }, (_unused, at) => at),
      );
      const usage = await fetch(`${serve.baseUrl}/api/v1/usage`, { headers: { 'x-api-key': key } });
      const { pages } = (await usage.json()) as { pages: { used: number } };
      assert.equal(pages.used, (round + 1) * pagesCount, 'each page is charged once');
      assert.ok(before < pagesCount, 'the crawl was over before it was killed');
      const counts = new Map<string, number>();
      for (const path of site.requests) counts.set(path, (counts.get(path) ?? 0) + 1);
      const again = [...counts].filter(([path, count]) => path !== '/robots.txt' && count > 1);
      assert.ok(
        again.every(([, count]) => count === 2),
        `pages are fetched more than twice: ${again}`,
      );
      assert.ok(again.length <= 2 * concurrency, `${again.length} pages were in flight and are fetched again`);
    } finally {
      await site.close();
    }
  }
  await serve.stop();
});
