import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, test } from 'node:test';
import type * as Client from '../../clients/typescript/src/index.ts';
import { ConsoleTest } from '../support/browser.ts';
import { installClientPackage } from '../support/client-packages.ts';
import { startSite } from '../support/fixture-site.ts';

/* The TypeScript client in a page of another origin than the server's, as in an app of a customer. */

const directory = mkdtempSync(join(tmpdir(), 'quarry-browser-client-'));
installClientPackage('typescript', directory);
const compiled = join(directory, '@quarry/client/dist');
const site = await startSite(
  { '/': '<!doctype html><title>App</title><p>An app' },
  (_request, response, { pathname }) =>
    pathname.endsWith('.js')
      ? response.setHeader('content-type', 'text/javascript').end(readFileSync(join(compiled, pathname)))
      : response.writeHead(404).end(),
);
// One browser for both servers: pages of this origin may call the first, and not the second.
const it = await ConsoleTest.start({ env: { QUARRY_CORS_ORIGINS: site.origin } });
after(async () => {
  await it.close();
  await site.close();
  rmSync(directory, { recursive: true });
});
afterEach(it.closePages);
const app = await it.server.provision.app();
const user = await it.server.provision.user(app);
const given = { baseUrl: it.server.baseUrl, key: app.publishableKey, token: user.token };

/** Runs in the page. Written as one function: the browser gets its source. */
async function useClient({ baseUrl, key, token }: typeof given): Promise<unknown> {
  const path = '/index.js';
  const { Quarry, QuarryError } = (await import(path)) as typeof Client;
  const quarry = new Quarry({ baseUrl, key, token });
  // More than is sent in one piece.
  const bytes = new Uint8Array(9 * 1024 * 1024).fill(65);
  const sent: number[] = [];
  const upload = (name: string, part: Uint8Array<ArrayBuffer>) =>
    quarry.files.upload(new File([part], name, { type: 'text/plain' }), {
      onProgress: (stored: number) => void sent.push(stored),
    });
  const large = await upload('large.txt', bytes);
  await upload('small.txt', bytes.subarray(0, 5));
  const content = await (await quarry.files.content(large.id)).blob();
  const names: string[] = [];
  for await (const { filename } of quarry.files.list({ page_size: 1 })) names.push(filename);

  const changes: string[] = [];
  for await (const { event, data } of quarry.kv.watch({})) {
    if (event === 'ready') await quarry.kv.put('theme', { value: 'dark' });
    if (!('value' in data)) continue;
    changes.push(`${event} ${String(data.value)}`);
    break;
  }
  const missing = await quarry.files.get('fil_missing').catch((error: unknown) => error);
  const invalid = await quarry.kv.put('theme', {} as never).catch((error: unknown) => error);
  const describe = (error: unknown) =>
    error instanceof QuarryError ? [error.status, error.code, typeof error.requestId] : String(error);
  return {
    progress: sent.at(-1) === 5 && sent.includes(bytes.length),
    size: content.size,
    names: names.sort(),
    changes,
    errors: [missing, invalid].map(describe),
  };
}

test('in a page of another origin the client uploads, lists, streams and fails as it does elsewhere', async () => {
  const page = await it.open(site.origin);
  assert.deepEqual(await page.evaluate(useClient, given), {
    progress: true,
    size: 9 * 1024 * 1024,
    names: ['large.txt', 'small.txt'],
    changes: ['put dark'],
    errors: [
      [404, 'not_found', 'string'],
      [422, 'invalid_parameters', 'string'],
    ],
  });
});

test('a page of an origin that the settings do not name reads nothing', async () => {
  const page = await it.open(site.origin.replace('127.0.0.1', 'localhost'));
  const outcome = await page.evaluate(async ({ baseUrl, key, token }) => {
    const path = '/index.js';
    const { Quarry } = (await import(path)) as typeof Client;
    const quarry = new Quarry({ baseUrl, key, token, retries: 0 });
    return quarry.files.list().then(
      () => 'read',
      () => 'refused',
    );
  }, given);
  assert.equal(outcome, 'refused');
  // The browser says which header is missing.
  assert.ok(it.problems.length > 0 && it.problems.every((problem) => /CORS policy|Failed to load/.test(problem)));
  it.problems.length = 0;
});
