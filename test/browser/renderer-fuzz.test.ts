import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { test } from 'node:test';
import { fuzzRenderer } from '../fuzz/render.ts';

/*
 * A few of the pages of `npm run fuzz -- --render`.
 *   RENDER_PAGES=200 FUZZ_SEED=1 node test/run.ts test/browser/renderer-fuzz.test.ts
 */
const pages = Number(process.env.RENDER_PAGES ?? 4);
const timeoutMs = pages > 4 ? 3_000 : 1_000;
const seed = Number(process.env.FUZZ_SEED ?? randomInt(2 ** 31));

test('hostile pages end in time, leave nothing behind and reach nothing inside', async (context) => {
  context.diagnostic(`repeat with FUZZ_SEED=${seed} RENDER_PAGES=${pages}`);
  const report = await fuzzRenderer({ pages, seed, timeoutMs });
  context.diagnostic(
    `${report.pages} pages, ${JSON.stringify(report.outcomes)}, the slowest took ${report.slowestMs} ms`,
  );
  assert.deepEqual(report.problems, []);
  assert.equal(report.pages, pages);
});
