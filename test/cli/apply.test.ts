// biome-ignore-all lint/suspicious/noTemplateCurlyInString: files contain references such as ${env:NAME}.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, beforeEach, test } from 'node:test';
import { connect } from '../../src/cli/client/client.ts';
import { changeRecord, readRecord } from '../../src/cli/develop/record.ts';
import { callQuarry } from '../support/command.ts';
import { startTestServer } from '../support/server.ts';

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const directory = mkdtempSync(join(tmpdir(), 'quarry-apply-test-'));
after(async () => {
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});

const files = {
  'sources/handbook.yaml': 'lookup_key: handbook\ntype: knowledge/documents\norg: acme\nmetadata: { name: Handbook }\n',
  'sources/annex.json':
    '{"lookup_key": "annex", "type": "knowledge/documents", "org": "acme", "parent_source": "handbook"}',
  'automations/greet.yaml': `lookup_key: greet
name: Greet
type: invoked
run_as_user: ada@example.com
workflow:
  kind: WorkflowGraph
  version: 1
  start_node: start
  nodes:
    - { id: start, kind: trigger, on_success: done }
    - { id: done, kind: complete, result: "{{$.name}} reads \${source:handbook}" }
`,
  'webhooks/shop.yaml': 'lookup_key: shop\nurl: http://127.0.0.1:4999/${env:HOOK_PATH}\nevents: [file.created]\n',
  'issuers/login.yaml': `issuer: http://127.0.0.1:4999/login
audience: shop
console: { client_id: quarry, client_secret: "\${env:CLIENT_SECRET}" }
`,
  'configs/prompts/support.md': 'Be brief.\n',
};

let app: Awaited<ReturnType<typeof server.provision.app>>;
let root: string;
let roots = 0;
beforeEach(async () => {
  app = await server.provision.app();
  await call('POST', '/orgs', { name: 'Acme', slug: 'acme' });
  await call('POST', '/users', { email: 'ada@example.com' });
  root = write(files);
});

function write(texts: Record<string, string>, to = join(directory, String(++roots))): string {
  for (const [path, text] of Object.entries(texts)) {
    mkdirSync(dirname(join(to, path)), { recursive: true });
    writeFileSync(join(to, path), text);
  }
  return to;
}

async function call<T extends object = Record<string, unknown>>(method: string, path: string, body?: object) {
  const options = { key: app.secretKey, ...(body ? { body } : {}) };
  return (await server.api<T>(method, `/api/v1${path}`, options)).body;
}

type Listed = { data: (Record<string, unknown> & { id: string })[] };

const variables = { HOOK_PATH: 'hook-7', CLIENT_SECRET: 'client-secret-7' };

function quarry(args: string[], env: Record<string, string> = variables) {
  return callQuarry(args, { env: { QUARRY_API_URL: server.baseUrl, QUARRY_API_KEY: app.secretKey, ...env } });
}

test('a directory is applied, and applying it again changes nothing', async () => {
  const planned = await quarry(['apply', root, '--dry-run']);
  assert.equal(planned.code, 3, planned.stderr);
  assert.match(planned.stdout, /\+ source {6}handbook .*handbook\.yaml/);
  assert.match(planned.stderr, /6 to create, 0 to update, 0 to delete, 0 unchanged/);
  assert.deepEqual((await call<Listed>('GET', '/knowledge_sources')).data, [], 'a dry run writes nothing');

  const applied = await quarry(['apply', root]);
  assert.equal(applied.code, 0, applied.stderr);
  const [annex, handbook] = (await call<Listed>('GET', '/knowledge_sources')).data;
  assert.deepEqual([handbook?.lookup_key, handbook?.metadata], ['handbook', { name: 'Handbook' }]);
  assert.equal(annex?.parent_source, handbook?.id);
  const greet = await call<{ status: string; workflow: { nodes: { result: string }[] } }>('GET', '/automations/greet');
  assert.equal(greet.status, 'running');
  assert.equal(greet.workflow.nodes[1]?.result, `{{$.name}} reads ${handbook?.id}`);
  const [webhook] = (await call<Listed>('GET', '/webhooks')).data;
  assert.equal(webhook?.url, 'http://127.0.0.1:4999/hook-7');
  assert.equal((await call<{ content: string }>('GET', '/config/prompts/support.md')).content, 'Be brief.\n');
  assert.doesNotMatch(applied.stdout + applied.stderr, /hook-7|client-secret|whsec_/, 'no secret is printed');

  const again = await quarry(['apply', root, '--dry-run']);
  assert.deepEqual([again.code, again.stdout], [0, ''], again.stdout);
  const stored = await call<{ updated_at: string }>('GET', '/automations/greet');
  assert.equal((await quarry(['apply', root])).code, 0);
  assert.equal((await call<{ updated_at: string }>('GET', '/automations/greet')).updated_at, stored.updated_at);
});

test('a change is shown member by member, and only it is written', async () => {
  await quarry(['apply', root]);
  write(
    {
      'automations/greet.yaml': `${files['automations/greet.yaml'].replace('reads', 'knows')}status: paused\n`,
      'sources/handbook.yaml': files['sources/handbook.yaml'].replace('metadata: { name: Handbook }\n', ''),
    },
    root,
  );
  const changed = await quarry(['apply', root]);
  assert.equal(changed.code, 0, changed.stderr);
  assert.match(changed.stdout, /~ automation {2}greet/);
  assert.match(changed.stdout, /workflow\.nodes\.done\.result: ".* reads cso_.*" → ".* knows cso_/);
  assert.match(changed.stdout, /status: "running" → "paused"/);
  assert.match(changed.stdout, /metadata\.name: "Handbook" → none/);
  assert.equal((await call<{ status: string }>('GET', '/automations/greet')).status, 'paused');
  assert.equal((await quarry(['apply', root, '--dry-run'])).code, 0);

  const secret = await quarry(['apply', root], { ...variables, CLIENT_SECRET: 'another', HOOK_PATH: 'hook-8' });
  assert.equal(secret.code, 0, secret.stderr);
  assert.match(secret.stdout, /console\.client_secret: set to a value from the environment/);
  assert.match(secret.stdout, /url: set to http:\/\/127\.0\.0\.1:4999\/\$\{env:HOOK_PATH\}/);
  assert.doesNotMatch(secret.stdout, /hook-[78]|another/);
});

test('--prune deletes what apply created, and nothing else', async () => {
  await call('POST', '/webhooks', { url: 'http://127.0.0.1:4999/own', events: ['*'], lookup_key: 'own' });
  await call('PUT', '/config/own.md', { content: 'own' });
  await quarry(['apply', root]);
  for (const path of ['webhooks/shop.yaml', 'sources/annex.json', 'configs/prompts/support.md'] as const)
    rmSync(join(root, path));
  const kept = await quarry(['apply', root]);
  assert.equal(kept.code, 0);
  assert.match(kept.stderr, /webhook shop is no longer in the directory: --prune deletes it/);
  const asked = await quarry(['apply', root, '--prune']);
  assert.equal(asked.code, 2, 'a script says --yes');
  const pruned = await quarry(['apply', root, '--prune', '--yes']);
  assert.equal(pruned.code, 0, pruned.stderr);
  assert.match(pruned.stdout, /- webhook {5}shop/);
  assert.deepEqual(
    (await call<Listed>('GET', '/webhooks')).data.map(({ lookup_key: key }) => key),
    ['own'],
  );
  assert.deepEqual(
    (await call<Listed>('GET', '/knowledge_sources')).data.map(({ lookup_key: key }) => key),
    ['handbook'],
  );
  const configs = (await call<Listed>('GET', '/config')).data.map(({ virtual_path: path }) => path);
  assert.deepEqual(configs.sort(), ['own.md', 'quarry/applied/default.json']);
});

test('an organisation is created, renamed and exported, and --prune never deletes it', async () => {
  const own = write({
    'orgs/harbour.yaml': 'slug: harbour\nname: Harbour\n',
    'sources/berths.yaml': 'lookup_key: berths\ntype: knowledge/documents\norg: harbour\npayload:\n  languag: german\n',
  });
  const made = await quarry(['apply', own]);
  assert.equal(made.code, 0);
  const warned = /^Warning: .*berths\.yaml:5:3: languag is stored, but not used; did you mean language\?$/m;
  assert.match(made.stderr, warned);
  write({ 'orgs/harbour.yaml': 'slug: harbour\nname: The harbour\n' }, own);
  const renamed = await quarry(['apply', own]);
  assert.match(renamed.stdout, /~ org {9}harbour .*\n {4}name: "Harbour" → "The harbour"/, renamed.stderr);
  await quarry(['export', join(directory, 'orgs')]);
  assert.equal(readFileSync(join(directory, 'orgs/orgs/harbour.yaml'), 'utf8'), 'slug: harbour\nname: The harbour\n');
  const broken = write({ 'orgs/a.yaml': 'name: A\nlogo: x.png\n' });
  const refused = await quarry(['apply', broken]);
  assert.match(refused.stderr, /a\.yaml:1:1: slug is missing/);
  assert.match(refused.stderr, /a\.yaml:2:1: logo/);
  rmSync(own, { recursive: true });
  mkdirSync(own);
  const pruned = await quarry(['apply', own, '--prune', '--yes']);
  assert.match(pruned.stdout, /^- source {6}berths\n$/, pruned.stderr);
  assert.ok((await call<Listed>('GET', '/orgs')).data.some(({ slug }) => slug === 'harbour'));
});

test('runs of apply at the same moment keep each other’s record', async () => {
  const client = connect({ url: server.baseUrl, key: app.secretKey }, AbortSignal.timeout(60_000));
  const keys = Array.from({ length: 6 }, (_, at) => `part-${at}`);
  const add = (key: string) => ({
    created: new Map([[`source ${key}`, { kind: 'source', key }]]),
    deleted: new Set<string>(),
    fingerprints: {},
  });
  await Promise.all(keys.map((key) => changeRecord(client, 'default', add(key))));
  const { created } = await readRecord(client, 'default');
  assert.deepEqual(created.map(({ key }) => key).sort(), keys);
});

test('mistakes are shown as file:line:col, and nothing is written', async () => {
  write(
    {
      'quarry.yaml': 'name: shop\nnames: 1\n',
      'source/other.yaml': 'any',
      'webhooks/token.yaml':
        'lookup_key: token\nurl: http://127.0.0.1:4999/?t=sk_abcdefghijklmnopqrstuvwx\nevents: []\n',
      'sources/second.yaml': files['sources/handbook.yaml'],
      'sources/broken.yaml': 'type: [\n',
      'automations/late.yaml': 'lookup_key: late\nname: Late\ntype: scheduled\nschedule: never\n',
      'issuers/plain.yaml':
        'issuer: http://127.0.0.1:4999/b\naudience: a\nconsole: { client_id: a, client_secret: plain }\n',
    },
    root,
  );
  const refused = await quarry(['apply', root], { HOOK_PATH: 'x' });
  assert.equal(refused.code, 1);
  const lines = refused.stderr.split('\n').map((line) => line.replace(`${root}/`, ''));
  for (const line of [
    /^quarry\.yaml:2:1: names is not a known member/,
    /^source:1:1: is not read; did you mean sources\?/,
    /^webhooks\/token\.yaml:2:1: url is a secret: write \$\{env:NAME\}/,
    /^webhooks\/token\.yaml:3:1: events/,
    /^sources\/second\.yaml:1:1: "handbook" is also in /,
    /^sources\/broken\.yaml:2:1: /,
    /^automations\/late\.yaml:4:1: schedule /,
    /^issuers\/plain\.yaml:3:26: client_secret is a secret/,
    /^issuers\/login\.yaml:3:31: the environment variable CLIENT_SECRET is not set/,
  ])
    assert.ok(
      lines.some((each) => line.test(each)),
      `${line} in\n${lines.join('\n')}`,
    );
  assert.deepEqual((await call<Listed>('GET', '/knowledge_sources')).data, []);
  assert.deepEqual((await call<Listed>('GET', '/config')).data, []);
});

test('what only the server can refuse is shown at its line', async () => {
  write({ 'sources/handbook.yaml': files['sources/handbook.yaml'].replace('acme', 'nowhere') }, root);
  const unknown = await quarry(['apply', root]);
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /handbook\.yaml:3:1: No org has the slug or name "nowhere"/);
  const other = write({ 'webhooks/a.yaml': 'lookup_key: a\nurl: http://10.0.0.1/\nevents: ["*"]\n' });
  const refused = await quarry(['apply', other]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /webhooks\/a\.yaml:2:1: url /);
  const fixed = write({ 'sources/a.yaml': files['sources/handbook.yaml'] });
  await quarry(['apply', fixed]);
  write({ 'sources/a.yaml': files['sources/handbook.yaml'].replace('org: acme', 'user: ada@example.com') }, fixed);
  const moved = await quarry(['apply', fixed]);
  assert.equal(moved.code, 1);
  assert.match(moved.stderr, /sources\/a\.yaml:3:1: user cannot be changed/);
});

test('an export is applied without a difference, also to another app', async () => {
  await quarry(['apply', root]);
  await call('PUT', '/config/odd.md', { content: 'Literal ${env:NOTHING}\r\n', content_type: 'text/plain' });
  await call('POST', '/automations', {
    ...{ name: 'Literal', lookup_key: 'literal', type: 'invoked', description: '${env:NOTHING} $${source:x}' },
  });
  await call('POST', '/knowledge_sources', {
    type: 'knowledge/documents',
    org: ((await call('GET', '/knowledge_sources?lookup_key=handbook')) as Listed).data[0]?.org,
  });
  const copy = join(directory, 'copy');
  const exported = await quarry(['export', copy]);
  assert.equal(exported.code, 0, exported.stderr);
  assert.match(exported.stderr, /Left out 1 of sources, which have no lookup_key: cso_/);
  assert.deepEqual(readdirSync(join(copy, 'sources')).sort(), ['annex.yaml', 'handbook.yaml']);
  assert.equal(
    readFileSync(join(copy, 'sources/handbook.yaml'), 'utf8'),
    files['sources/handbook.yaml'].replace('metadata: { name: Handbook }', 'metadata:\n  name: Handbook'),
  );
  assert.match(readFileSync(join(copy, 'automations/greet.yaml'), 'utf8'), /\$\{source:handbook\}/);
  const same = await quarry(['apply', copy, '--dry-run'], {});
  assert.deepEqual([same.code, same.stdout], [0, ''], same.stdout + same.stderr);

  app = await server.provision.app();
  await call('POST', '/orgs', { name: 'Acme', slug: 'acme' });
  await call('POST', '/users', { email: 'ada@example.com' });
  const applied = await quarry(['apply', copy], {});
  assert.equal(applied.code, 0, applied.stderr);
  assert.equal((await quarry(['apply', copy, '--dry-run'], {})).code, 0);
  assert.equal((await quarry(['export', copy])).code, 2, 'a directory with files is not overwritten');
});

test('an app with nothing to export is an empty directory, which apply reads', async () => {
  const empty = join(directory, 'empty');
  assert.equal((await quarry(['export', empty])).code, 0);
  const same = await quarry(['apply', empty, '--dry-run']);
  assert.deepEqual([same.code, same.stdout], [0, ''], same.stderr);
});
