import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import Fastify from 'fastify';
import type { Config } from '../../../src/config/config.ts';
import { registerConsole } from '../../../src/console/static.ts';

const built = join(mkdtempSync(join(tmpdir(), 'quarry-console-')), 'dist');
const fastify = Fastify();
after(async () => {
  await fastify.close();
  rmSync(join(built, '..'), { recursive: true, force: true });
});

/** Builds a console of a page and some scripts. */
function build(page: string, scripts: string[]): void {
  mkdirSync(join(built, 'assets'), { recursive: true });
  writeFileSync(join(built, 'index.html'), page);
  for (const name of scripts) writeFileSync(join(built, 'assets', name), name);
}

const unbuild = () => rmSync(built, { recursive: true, force: true });

async function get(path: string): Promise<[status: number, body: string]> {
  const { statusCode, body } = await fastify.inject(path);
  return [statusCode, body];
}

test('a running server survives that its console is deleted, and serves the next build', async () => {
  fastify.setErrorHandler((error, _request, reply) => {
    const { code } = error as { code?: string };
    return reply.code(code === 'not_found' ? 404 : 500).send(code);
  });
  build('first', ['a-1.js', 'b-1.js']);
  const config = { blobStore: 'disk' } as unknown as Config;
  await registerConsole(fastify, { config, baseUrl: () => 'http://localhost', isRoute: () => false, built });
  assert.deepEqual(await get('/console/assets/a-1.js'), [200, 'a-1.js']);
  unbuild();
  // What is cached is served. What is gone is 404, on which an open tab loads the page again.
  assert.deepEqual(await get('/console/assets/a-1.js'), [200, 'a-1.js']);
  assert.deepEqual(await get('/console/assets/b-1.js'), [404, 'not_found']);
  const [status, says] = await get('/console/files');
  assert.equal(status, 404);
  assert.match(says, /npm run build:console/);
  build('second', ['a-2.js']);
  assert.deepEqual(await get('/console'), [200, 'second']);
  assert.deepEqual(await get('/console/assets/a-2.js'), [200, 'a-2.js']);
});
