import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, test } from 'node:test';
import { deflateSync } from 'node:zlib';
import { usualTimeouts } from '../../../src/lib/timeouts.ts';
import { extractUrl, type TestExtraction, waitForExtraction } from '../../support/extractions.ts';
import { type FixtureSite, htmlPage, responses, startSite } from '../../support/fixture-site.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { startWatch } from '../../support/speed.ts';

/* One place for jobs, and many crawls that wait for sites that do not answer. */

let server: TestServer;
let app: TestApp;
let other: TestApp;
let silent: FixtureSite;
let site: FixtureSite;
const hanging: ServerResponse[] = [];
let onHanging = (): void => {};
let isSilent = true;

before(async () => {
  server = await startTestServer({
    env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8', QUARRY_JOB_WORKERS: '1' },
    timeouts: { ...usualTimeouts, fetchMs: 900_000 },
  });
  app = await server.provision.app();
  other = await server.provision.app();
  silent = await startSite({}, (_request, response) => {
    if (isSilent) hanging.push(response);
    else response.writeHead(404).end();
    onHanging();
  });
  site = await startSite({
    '/robots.txt': '',
    '/': htmlPage('Home', ['/a', '/b']),
    '/a': htmlPage('A'),
    '/b': (_request, response) =>
      response
        .writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'deflate' })
        .end(Buffer.concat([deflateSync(htmlPage('B')), Buffer.from('xy')])),
  });
});
after(async () => {
  await server.close();
  await silent.close();
  await site.close();
});

async function startLink(key: string, url: string): Promise<string> {
  const created = await server.api<TestExtraction>('POST', '/api/v1/extractions', {
    key,
    body: { destination_kind: 'storage', destination_path: 'out', url, mode: 'link' },
  });
  assert.equal(created.status, 202);
  return created.body.id;
}

function waitForOpenRequests(count: number): Promise<void> {
  return new Promise((resolve) => {
    onHanging = () => hanging.length >= count && resolve();
    onHanging();
  });
}

test('links to an unresponsive host delay no other page, and end when they are deleted', async () => {
  const links = [];
  for (let n = 0; n < 30; n++) links.push(await startLink(app.secretKey, `${silent.origin}/${n}`));
  await waitForOpenRequests(30);
  const done = await extractUrl(server, other.secretKey, { url: `${site.origin}/` });
  assert.equal(done.outputs.length, 3);
  assert.equal(hanging.length, 30);
  for (const id of links)
    assert.equal(
      (await server.api<TestExtraction>('GET', `/api/v1/extractions/${id}`, { key: app.secretKey })).body.state,
      'running',
    );

  const [first] = links;
  const closed = Promise.race(
    hanging.map((response) => new Promise<void>((resolve) => response.once('close', resolve))),
  );
  const watch = startWatch();
  assert.equal((await server.api('DELETE', `/api/v1/extractions/${first}`, { key: app.secretKey })).status, 204);
  await closed;
  watch.within(2_000, 'The end of its request');
  isSilent = false;
  for (const response of hanging) response.writeHead(404).end();
  for (const id of links.slice(1)) await waitForExtraction(server.baseUrl, app.secretKey, id);
});

test('a page is requested again in time on a machine whose clock is ahead', async () => {
  const ahead = await startTestServer({
    env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' },
    clock: new ManualClock(new Date(Date.now() + 3_600_000)),
  });
  const slow = await startSite({
    '/robots.txt': '',
    '/': htmlPage('Home', ['/a']),
    '/a': responses.flaky(1, htmlPage('A'), { 'retry-after': '2' }),
  });
  try {
    const { secretKey } = await ahead.provision.app();
    const done = await extractUrl(ahead, secretKey, { url: `${slow.origin}/`, sitemap: 'skip' });
    assert.equal(done.outputs.length, 2);
  } finally {
    await slow.close();
    await ahead.close();
  }
});
