import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { killEmbeddedPostgres } from '../../src/db/embedded.ts';
import { externalDatabase } from '../support/cells-of-process.ts';
import { type TestExtraction, waitForExtraction } from '../support/extractions.ts';
import { startLanguageModel } from '../support/language-model.ts';
import { sendRequest } from '../support/request.ts';
import { startServe } from '../support/serve.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-crash-structured-'));
chmodSync(dataDir, 0o755);
const model = await startLanguageModel();
after(async () => {
  await model.close();
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
});

/** The number of requests of one extraction that are in flight at the same time. */
const inFlightMax = 4;
const { settings } = await externalDatabase();
const env = {
  ...settings,
  QUARRY_DATA_DIR: dataDir,
  QUARRY_LOG_LEVEL: 'silent',
  QUARRY_PARSE_WORKERS: '1',
  QUARRY_LLM_URL: model.url,
  QUARRY_LLM_MODEL: 'small',
  QUARRY_LLM_CONTEXT_TOKENS: '4096',
};
const chapters = Array.from({ length: 24 }, (_, n) => `# Chapter ${n}\n\nWord${n}. ${'Filler text. '.repeat(120)}\n`);

test('a structured extraction resumes after every process was killed, and repeats only what was in flight', async () => {
  let serve = await startServe(env);
  const { secret_key: key } = JSON.parse(readFileSync(join(dataDir, 'credentials.json'), 'utf8')) as {
    secret_key: string;
  };
  const asked: string[] = [];
  const halfway = Promise.withResolvers<void>();
  model.script = ({ messages }, number) => {
    const words = [...(messages[1]?.content ?? '').matchAll(/Word\d+/g)].map(([word]) => word);
    asked.push(words.join());
    if (number === 12) halfway.resolve();
    // Requests from now on get no response before the process dies.
    if (number >= 12 && number < 12 + inFlightMax && !resumed) return { respond: () => {} };
    return { text: JSON.stringify(words), usage: [100, 10] };
  };
  let resumed = false;
  const file = await sendRequest<{ id: string }>(serve.baseUrl, 'POST', '/api/v1/files', {
    key,
    body: {
      filename: 'book.md',
      content_type: 'text/markdown',
      data: Buffer.from(chapters.join('\n')).toString('base64'),
    },
  });
  const created = await sendRequest<TestExtraction>(serve.baseUrl, 'POST', '/api/v1/extractions', {
    key,
    body: { file: file.body.id, destination_kind: 'storage', schema: { type: 'array', items: { type: 'string' } } },
  });
  assert.equal(created.status, 202, created.text);
  await halfway.promise;
  await serve.kill();
  killEmbeddedPostgres(dataDir);
  resumed = true;
  serve = await startServe(env);
  const done = await waitForExtraction(serve.baseUrl, key, created.body.id);
  assert.equal(done.state, 'done', JSON.stringify(done.error));
  assert.deepEqual(
    done.outputs[0]?.data,
    chapters.map((_, n) => `Word${n}`),
  );
  const { pieces = 0, pieces_done: piecesDone } = done.data_progress ?? {};
  assert.ok(pieces > 16, `${pieces} pieces`);
  assert.equal(piecesDone, pieces);
  assert.equal(new Set(asked).size, pieces);
  assert.ok(asked.length <= pieces + inFlightMax, `${asked.length} requests for ${pieces} pieces`);
  // What was reserved when the process died counts, whether it was sent or not.
  assert.ok((done.usage?.requests ?? 0) >= asked.length);
  await serve.stop();
});
