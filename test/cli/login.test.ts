import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { type CallOptions, callQuarry } from '../support/command.ts';
import { startTestServer } from '../support/server.ts';

/* `quarry login`, `whoami` and `logout`. */

const server = await startTestServer();
const { provision, baseUrl } = server;
const { app, member, otherApp } = await provision.world();
const directory = mkdtempSync(join(tmpdir(), 'quarry-login-'));
const file = join(directory, 'config', 'profile.json');
const env = { QUARRY_DATA_DIR: join(directory, 'no-data'), QUARRY_PROFILE: file };
after(async () => {
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});

const quarry = (args: string[], options: CallOptions = {}) =>
  callQuarry(args, { ...options, env: { ...env, ...options.env } });
const whoami = async () => JSON.parse((await quarry(['whoami', '--json'])).stdout) as Record<string, unknown>;
const readProfile = () => JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>;

test('a login by key lets later commands name no server and no credential', async () => {
  const ran = await quarry(['login', `${baseUrl}/`], { input: `${app.secretKey}\n` });
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stderr, /^Logged in to http:\S+ as secret key\. Written to .*profile\.json\.\n$/);
  assert.doesNotMatch(ran.stderr, new RegExp(app.secretKey));
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal((await quarry(['token', 'keys'])).code, 0);
  const { url, kind, app: named, from } = await whoami();
  assert.deepEqual([url, kind, named, from], [`${baseUrl}/`, 'key', app.app.id, 'profile']);
  const shown = await quarry(['whoami']);
  assert.match(shown.stdout, /^server {3}http.*\nas {7}secret key\napp {6}dap_\w+\nfrom {5}profile\n$/);
});

test('what the command or the environment names goes before the profile, whose key goes to its own server only', async () => {
  const other = { QUARRY_API_KEY: otherApp.secretKey };
  const named = JSON.parse((await quarry(['whoami', '--json'], { env: other })).stdout);
  assert.deepEqual([named.app, named.from], [otherApp.app.id, 'environment']);
  const option = JSON.parse((await quarry(['whoami', '--json', '--token', member.token], { env: other })).stdout);
  assert.deepEqual([option.kind, option.from], ['user', 'options']);
  const stranger = await quarry(['whoami', '--url', 'http://127.0.0.1:9']);
  assert.equal(stranger.code, 2);
  assert.match(stranger.stderr, /No credential for http:\/\/127\.0\.0\.1:9\. Run `quarry login/);
});

test('a login by developer token takes the only app, and keeps it', async () => {
  const ran = await quarry(['login', baseUrl, '--token', otherApp.developerToken]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(readProfile().app, otherApp.app.id);
  const { kind, app: named } = await whoami();
  assert.deepEqual([kind, named], ['developer', otherApp.app.id]);
  assert.equal((await quarry(['token', 'keys'])).code, 0);
  const refused = await quarry(['login', baseUrl, '--token', otherApp.developerToken, '--app', app.app.id]);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, new RegExp(`is not an app of this developer.*\n  ${otherApp.app.id} `));
  assert.equal(readProfile().app, otherApp.app.id);
});

test('a login by e-mail keeps a token instead of the password, and the logout revokes it', async () => {
  const body = { email: 'ada@example.com', password: 'correct horse' };
  assert.equal((await server.api('POST', '/api/v1/users', { key: app.secretKey, body })).status, 201);
  const args = ['login', baseUrl, '--email', body.email, '--publishable-key', app.publishableKey];
  const wrong = await quarry(args, { input: 'something else\n' });
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /^401: /);
  const ran = await quarry(args, { input: `${body.password}\n` });
  assert.equal(ran.code, 0, ran.stderr);
  assert.match(ran.stderr, /as user ada@example\.com/);
  const { token } = readProfile() as { token: string };
  assert.match(token, /^sat_/);
  assert.doesNotMatch(readFileSync(file, 'utf8'), /correct horse/);
  assert.equal((await quarry(['kv', 'put', 'theme', 'dark'])).code, 0);
  assert.equal((await quarry(['kv', 'get', 'theme'])).stdout, 'dark');

  assert.deepEqual(await quarry(['logout']), { code: 0, stdout: '', stderr: '' });
  assert.equal(existsSync(file), false);
  assert.equal((await server.api('GET', '/api/v1/users/me', { token })).status, 401);
  assert.match((await quarry(['logout'])).stderr, /Not logged in/);
  const lost = await quarry(['whoami']);
  assert.equal(lost.code, 2);
  assert.match(lost.stderr, /quarry login URL/);
});

test('a refused or unusable credential writes nothing', async () => {
  const cases: [string[], number, RegExp, string?][] = [
    [['login', baseUrl, '--key', 'sk_wrong_and_long_enough'], 1, /^401: /],
    [['login', baseUrl], 2, /Secret key or token is missing/, ''],
    [['login', baseUrl, '--email', 'a@example.com'], 2, /requires --publishable-key/],
    [['login', baseUrl, '--key', 'sk_a', '--token', 'sat_b'], 2, /only one of/],
    [['login', 'ftp://example.com', '--key', 'sk_a'], 2, /http or https/],
  ];
  for (const [args, code, words, input] of cases) {
    const ran = await quarry(args, input === undefined ? {} : { input });
    assert.equal(ran.code, code, `${args.join(' ')}: ${ran.stderr}`);
    assert.match(ran.stderr, words);
  }
  assert.equal(existsSync(file), false);
});

test('a bearer token that is too short is called invalid, not missing', async () => {
  const bad = await server.api<{ error: { code: string; message: string } }>('GET', '/api/v1/users/me', {
    token: 'bad',
  });
  assert.deepEqual(
    [bad.status, bad.body.error.code, bad.body.error.message],
    [401, 'invalid_credentials', 'The bearer token is not valid.'],
  );
});
