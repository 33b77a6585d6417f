import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { openBreakingProxy } from '../support/breaking-proxy.ts';
import { runQuarry, startQuarry } from '../support/command.ts';
import { bytesOf, type FileBody } from '../support/files.ts';
import { startTestServer } from '../support/server.ts';

const server = await startTestServer();
const proxy = await openBreakingProxy(server.baseUrl);
const directory = mkdtempSync(join(tmpdir(), 'quarry-resumable-'));
after(async () => {
  await proxy.close();
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});
const { db, provision } = server;
const app = await provision.app();
const bytes = bytesOf(33 * 1024 * 1024);
const path = join(directory, 'large.bin');
writeFileSync(path, bytes);
const env = { QUARRY_PROFILE: join(directory, 'home', 'profile.json'), QUARRY_API_KEY: app.secretKey };
const upload = ['upload', path, '--url', proxy.url, '--json'];

const isUploaded = (stdout: string) => {
  const file = JSON.parse(stdout) as FileBody;
  assert.deepEqual([file.size, file.checksum], [bytes.length, createHash('sha256').update(bytes).digest('hex')]);
};

test('an upload that was killed is continued by the next command, and makes one file', async () => {
  proxy.breakAfter = [20 * 1024 * 1024];
  const killed = startQuarry(upload, { env });
  proxy.onBreak = () => killed.child.kill('SIGKILL');
  await killed.ended;
  proxy.onBreak = () => {};
  const [row] = await db<{ received: number }[]>`select received from uploads`;
  assert.ok(row !== undefined);
  proxy.breakAfter = [5 * 1024 * 1024];
  const ran = await runQuarry(upload, { env });
  assert.equal(ran.code, 0, ran.stderr);
  isUploaded(ran.stdout);
  assert.deepEqual([proxy.breakAfter, (await db`select 1 from files`).length], [[], 1]);
  assert.equal(readFileSync(join(directory, 'home', 'uploads.json'), 'utf8'), '{}\n');
});

test('a file that has changed since is uploaded from its first byte', async () => {
  proxy.breakAfter = [10 * 1024 * 1024];
  const killed = startQuarry(upload, { env });
  proxy.onBreak = () => killed.child.kill('SIGKILL');
  await killed.ended;
  assert.ok(existsSync(join(directory, 'home', 'uploads.json')));
  bytes[5] = 99;
  writeFileSync(path, bytes);
  utimesSync(path, new Date(), new Date(Date.now() + 5_000));
  const ran = await runQuarry(upload, { env });
  assert.equal(ran.code, 0, ran.stderr);
  isUploaded(ran.stdout);
});
