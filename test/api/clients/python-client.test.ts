import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { synchronousOf } from '../../../scripts/python-client.ts';
import { openBreakingProxy } from '../../support/breaking-proxy.ts';
import { runPython, startScriptedServer } from '../../support/python.ts';
import { startTestServer } from '../../support/server.ts';
import { projectRoot } from '../../support/source.ts';

/*
 * Both halves of the Python client against a real server, and one that fails as it is told. The programs are in
 * test/fixtures/python/programs, written for tasks; here, they are also turned into programs of threads.
 */

const packageDirectory = join(projectRoot, 'clients/python');
const fixtures = join(projectRoot, 'test/fixtures/python');
const directory = mkdtempSync(join(tmpdir(), 'quarry-python-'));
const halves = ['async', 'sync'] as const;
writePrograms();
/** The longest part of this file runs beside the others. */
const typesChecked = runPython(
  [
    ...['-m', 'mypy', '--config-file', join(packageDirectory, 'pyproject.toml')],
    ...['--cache-dir', '/dev/null', join(packageDirectory, 'src'), join(directory, 'async')],
  ],
  {},
);

const server = await startTestServer();
const scripted = await startScriptedServer(server.baseUrl);
const breaking = await openBreakingProxy(server.baseUrl);
after(async () => {
  await typesChecked;
  await breaking.close();
  await scripted.close();
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});
const app = await server.provision.app();
const user = await server.provision.user(app);

function writePrograms(): void {
  const programs = join(fixtures, 'programs');
  for (const half of halves) {
    mkdirSync(join(directory, half));
    cpSync(join(fixtures, 'halves', half), join(directory, half), { recursive: true });
    for (const name of readdirSync(programs).filter((each) => each.endsWith('.py'))) {
      const text = readFileSync(join(programs, name), 'utf8');
      writeFileSync(join(directory, half, name), half === 'async' ? text : synchronousOf(text));
    }
  }
}

/** Runs the `main` of a program in one half, and returns its result. */
async function run(
  program: string,
  half: (typeof halves)[number],
  more: Record<string, string> = {},
): Promise<unknown> {
  const call = half === 'async' ? `asyncio.run(${program}.main())` : `${program}.main()`;
  const { code, output, errors } = await runPython(
    ['-W', 'default', '-c', `import asyncio, json, ${program}; print(json.dumps(${call}))`],
    {
      ...{
        BASE: server.baseUrl,
        KEY: app.secretKey,
        PUBLISHABLE: app.publishableKey,
        SCRIPTED: `${scripted.url}/${half}`,
      },
      ...{ BREAKING: breaking.url, USER_ID: user.id, DIRECTORY: directory, HALF: half },
      ...{ EMAIL: `${program}-${half}@example.com`, PYTHONPATH: join(directory, half), ...more },
    },
  );
  assert.equal(code, 0, errors);
  // Python reports connections and tasks that nobody closed.
  assert.doesNotMatch(errors, /ResourceWarning|never awaited|never retrieved/);
  return JSON.parse(output);
}

for (const half of halves) {
  test(`resources, lists, errors, files, texts and runs are what the API has (${half})`, async () => {
    assert.deepEqual(await run('resources', half), {
      agents: [2, 3, true, ['Agent 1', 'Agent 2', 'Agent 3'], 'Changed'],
      entries: ['a/b', ['...', 'a/b', 'ä ?#%'], ['".." cannot be part of a path.', 'precondition_failed']],
      errors: [
        [422, 'invalid_parameters', 'email', true],
        [null, 'unreachable'],
        'base_url must be an address such as http://127.0.0.1:8080',
      ],
      files: ['näme.txt', [[11, 11]], 'text/markdown', 'bytes', 'from a pipe', 0],
      texts: ['succeeded', 'A refund takes five days.', 'done', 1],
      runs: ['completed', 'Hello Ada', 'run_completed', 'Oslo'],
    });
  });

  test(`a connector sends, resumes and follows changes, and the checks find those that do not (${half})`, async () => {
    const { checks, ...found } = (await run('connectors', half)) as { checks: Record<string, string[]> };
    assert.deepEqual(found, {
      failed: ['The other system is down.', '409', 'The other system is down.', 'invalid_parameters'],
      whole: ['succeeded', 150, 4, 150],
      changed: ['succeeded', 1],
      cursors: [null, 'first', 'all', 'all'],
      closed: 2,
    });
    if (half === 'sync') return;
    assert.deepEqual(checks.sound, []);
    const forgotten = 'Stopped after 1 batches and resumed, 1 documents differ and 0 are too many.';
    assert.deepEqual(checks.forgetful, [forgotten]);
    const noisy = checks.noisy?.join('\n') ?? '';
    for (const words of [/no cursor/, /"2" twice/, /second full sync writes/, /reports changes/])
      assert.match(noisy, words);
  });

  test(`a request is repeated where that has no second effect, and nowhere else (${half})`, async () => {
    const seen = (path: string) => scripted.requests.get(`/${half}/${path}`) ?? [];
    assert.deepEqual(await run('repeats', half), {
      ...{ lost: `Once ${half}`, busy: 'ok', unrepeated: ['unreachable', 'unreachable', 'unreachable'] },
      tomorrow: [429, 'token_budget_exceeded', 86_400],
      html: [404, 'bad_response', null],
      text: [null, 'bad_response', null],
      unclear: [502, 'bad_response', null],
      silent: 'timed_out',
    });
    const [first, second, ...more] = seen('lost').map(({ headers }) => headers['idempotency-key']);
    assert.ok(first !== undefined && first === second && more.length === 0);
    const teams = await server.api('GET', '/api/v1/teams?page_size=100', { key: app.secretKey });
    const same = (teams.body.data as { name: string }[]).filter(({ name }) => name === `Once ${half}`);
    assert.equal(same.length, 1);
    for (const path of ['patch', 'conditional', 'credential'])
      assert.deepEqual(
        seen(path).map(({ headers }) => headers['idempotency-key']),
        [undefined],
        path,
      );
    assert.deepEqual(
      ['busy', 'gone', 'tomorrow', 'html', 'unclear'].map((path) => seen(path).length),
      [3, 2, 1, 1, 3],
    );
  });

  test(`a broken stream and a broken upload continue where they were, and a wait can be cancelled (${half})`, async () => {
    breaking.breakAfter.push(3_000_000, 100_000);
    const found = await run('streams', half);
    assert.deepEqual(found, { seen: ['1', '2'], upload: [20_080_000, 20_080_000, true], cancelled: 'cancelled' });
    assert.deepEqual(breaking.breakAfter, []);
    const opened = (scripted.requests.get(`/${half}/stream`) ?? []).map(({ headers }) => headers['last-event-id']);
    assert.equal(opened.length, 2);
    assert.ok(opened[0] === undefined && opened[1]);
  });

  test(`a token is renewed once for all who wait, and a refresh token is never sent twice (${half})`, async () => {
    const sent = (path: string) =>
      (scripted.requests.get(`/${half}/${path}`) ?? []).filter(({ url }) => url.endsWith('/auth/refresh')).length;
    const lost = ['unreachable', 'signed_out', 'signed_out'];
    assert.deepEqual(await run('sessions', half), { users: true, lost });
    assert.deepEqual([sent('refresh'), sent('unrefreshed')], [2, 1]);
  });
}

test('messages of webhooks, and data of an application, are what they are said to be', async () => {
  const secret = `whsec_${randomBytes(24).toString('base64')}`;
  const body = JSON.stringify({ id: 'evt_1', type: 'file.created', timestamp: '', sequence: 1, data: 'ü' });
  const sign = (at: Date) => ({
    'Webhook-Id': 'evt_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': `v1,AAAA v1,ä ${new Webhook(secret).sign('evt_1', at, body)}`,
  });
  const now = new Date(Date.now());
  const { 'Webhook-Id': _, ...unnamed } = sign(now);
  const messages = [
    { body, headers: sign(now) },
    { body: body.replace('ü', 'u'), headers: sign(now) },
    { body, headers: sign(new Date(now.getTime() - 400_000)) },
    { body, headers: { ...sign(now), 'webhook-timestamp': 'nan' } },
    { body, headers: { ...sign(now), 'webhook-signature': '' } },
    { body, headers: unnamed },
  ];
  const tooLongAgo = 'The message was signed too long ago, or the clock is wrong.';
  const unsigned = 'No signature of the message fits the secret.';
  const line = { type: 'object', properties: { text: { type: 'string' }, total: { type: 'number' } } };
  const closed = { additionalProperties: false };
  assert.deepEqual(await run('once', 'sync', { SECRET: secret, MESSAGES: JSON.stringify(messages) }), {
    verified: ['file.created', unsigned, tooLongAgo, tooLongAgo, unsigned, 'The message has no header webhook-id.'],
    schemas: [
      {
        type: 'object',
        properties: {
          company: { type: 'string' },
          currency: { enum: ['EUR', 'USD'] },
          lines: { type: 'array', items: { ...line, required: ['text', 'total'], ...closed } },
          due: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        },
        required: ['company', 'currency', 'lines', 'due'],
        ...closed,
      },
      {
        type: 'object',
        properties: {
          parts: {
            type: 'array',
            items: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'], ...closed },
          },
          price: { type: 'number' },
        },
        required: ['parts'],
        ...closed,
      },
      { type: 'object', properties: { total: { type: 'number' } } },
    ],
    data: [3.5, 'Nib', 0, 7],
    copied: [404, 'not_found', 'No (404 not_found).'],
  });
});

test('the wheel has every file, the types and their marker', async () => {
  // Setuptools writes beside what it builds. Called as pip calls it, which a machine may not have.
  const source = join(directory, 'package');
  cpSync(packageDirectory, source, { recursive: true });
  const build =
    'import os, sys; os.chdir(sys.argv[1]); from setuptools import build_meta; build_meta.build_wheel("..")';
  const built = await runPython(['-c', build, source], {});
  assert.equal(built.code, 0, built.errors);
  const [wheel = ''] = readdirSync(directory).filter((name) => name.endsWith('.whl'));
  assert.match(wheel, /^quarry_client-\d+\.\d+\.\d+-py3-none-any\.whl$/);
  const listed = await runPython(['-m', 'zipfile', '-l', join(directory, wheel)], {});
  const wanted = readdirSync(join(packageDirectory, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('__pycache__'))
    .map((entry) => join(entry.parentPath, entry.name).slice(join(packageDirectory, 'src').length + 1))
    .filter((name) => !name.includes('.egg-info'));
  for (const name of wanted) assert.ok(listed.output.includes(`${name} `), name);
  assert.ok(wanted.includes('quarry_client/py.typed'));
});

test('mypy finds no mistake in the package and its programs, and each that the sample contains', async () => {
  const { code, output } = await typesChecked;
  assert.equal(code, 0, output);
});
