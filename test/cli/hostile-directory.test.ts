import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { runQuarry } from '../support/command.ts';

/*
 * A directory that somebody else made, such as a clone, contains `data/credentials.json`. It must receive no credential
 * of the person who runs `quarry` there, and no file unless it names a server on this machine.
 */

const heard: { url: string | undefined; key: unknown; authorization: unknown }[] = [];
const stranger = createServer((request, response) => {
  heard.push({ url: request.url, key: request.headers['x-api-key'], authorization: request.headers.authorization });
  request.resume();
  response.setHeader('content-type', 'application/json').end('{"data":[],"has_next":false}');
});
stranger.listen(0);
await once(stranger, 'listening');
const { port } = stranger.address() as AddressInfo;
const place = mkdtempSync(join(tmpdir(), 'quarry-hostile-'));
const cwd = join(place, 'clone');
mkdirSync(join(cwd, 'data'), { recursive: true });
writeFileSync(join(cwd, 'notes.txt'), 'mine');
after(() => {
  stranger.close();
  stranger.closeAllConnections();
  rmSync(place, { recursive: true, force: true });
});

function writeCredentials(baseUrl: unknown): void {
  const text = JSON.stringify({
    ...{ base_url: baseUrl, app: 'dap_theirs', developer_token: 'dvt_theirs' },
    ...{ secret_key: 'sk_theirs', publishable_key: 'pk_theirs' },
  });
  writeFileSync(join(cwd, 'data', 'credentials.json'), text);
}

/** Runs the command in the hostile directory. Returns its exit code and what the stranger's server heard. */
async function run(args: string[], env: Record<string, string> = {}) {
  heard.length = 0;
  const { code, stderr } = await runQuarry(args, { cwd, env });
  return { code, stderr, heard: [...heard] };
}

/** Resolves to this machine, but does not name it: a stand-in for any other server. */
const elsewhere = `http://[::ffff:127.0.0.1]:${port}`;
const here = `http://127.0.0.1:${port}`;
const mine = { QUARRY_API_KEY: 'sk_mine-mine-mine' };

test('a key or token of the caller is not sent to the server that the working directory names', async () => {
  for (const baseUrl of [elsewhere, here]) {
    writeCredentials(baseUrl);
    for (const [args, env] of [
      [['token', 'keys'], mine],
      [['token', 'keys'], { QUARRY_TOKEN: 'sat_mine-mine' }],
      [['token', 'keys', '--token', 'sat_mine-mine'], {}],
      [['token', 'keys', '--key', 'sk_mine-mine-mine'], {}],
      // A relative directory depends on where the command runs.
      [['token', 'keys'], { ...mine, QUARRY_DATA_DIR: 'data' }],
    ] as const) {
      const ran = await run([...args], env);
      assert.deepEqual([ran.code, ran.heard], [2, []], `${baseUrl} ${args.join(' ')}: ${ran.stderr}`);
    }
  }
});

test('nothing is sent to another machine that the working directory names, with its credential or without', async () => {
  for (const baseUrl of [
    elsewhere,
    `http://localhost.example.com:${port}`,
    `http://127.0.0.1.example.com:${port}`,
    7,
    'no',
  ]) {
    writeCredentials(baseUrl);
    for (const args of [
      ['extract', 'notes.txt'],
      ['files', 'list'],
    ]) {
      const ran = await run(args);
      assert.deepEqual([ran.code, ran.heard], [2, []], `${baseUrl} ${args.join(' ')}: ${ran.stderr}`);
    }
  }
  writeCredentials(elsewhere);
  const named = await run(['token', 'keys', '--url', elsewhere]);
  assert.deepEqual(
    [named.code, named.heard],
    [2, []],
    'Its credential is not used for a server that the caller names.',
  );
});

test('the file of a server on this machine is used with its own credential', async () => {
  writeCredentials(here);
  const { heard: requests } = await run(['token', 'keys']);
  assert.deepEqual(
    requests.map(({ key, authorization }) => [key, authorization]),
    [['sk_theirs', undefined]],
  );
});

test('a data directory that the caller names is trusted, by option or by an absolute path in the environment', async () => {
  writeCredentials(elsewhere);
  for (const [args, env] of [
    [['--data-dir', 'data'], {}],
    [[], { QUARRY_DATA_DIR: join(cwd, 'data') }],
  ] as const) {
    const own = await run(['token', 'keys', ...args], env);
    assert.deepEqual(
      own.heard.map(({ key }) => key),
      ['sk_theirs'],
      own.stderr,
    );
    const combined = await run(['token', 'keys', ...args], { ...env, ...mine });
    assert.deepEqual(
      combined.heard.map(({ key }) => key),
      [mine.QUARRY_API_KEY],
      combined.stderr,
    );
  }
});

test('options and environment combine: the server of one with the credential of the other', async () => {
  writeCredentials(elsewhere);
  const { heard: requests } = await run(['token', 'keys', '--url', here], mine);
  assert.deepEqual(
    requests.map(({ key }) => key),
    [mine.QUARRY_API_KEY],
  );
  const turned = await run(['token', 'keys', '--key', 'sk_option-option'], { QUARRY_API_URL: here });
  assert.deepEqual(
    turned.heard.map(({ key }) => key),
    ['sk_option-option'],
  );
});
