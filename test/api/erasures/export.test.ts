import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { after, test } from 'node:test';
import { unzipSync } from 'fflate';
import { Quarry } from '../../../clients/typescript/src/index.ts';
import { production } from '../../../src/db/database.ts';
import { listRunsOfUser } from '../../../src/erasures/export-runs.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { planted } from '../../support/erasures.ts';
import type { TestUser } from '../../support/provisioner.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const server = await startTestServer();
after(() => server.close());
const app = await server.provision.app();
const key = app.secretKey;
const marks = planted(server, app);

type About = { user: string; app: string; rows: Record<string, number>; missing_files: string[]; left_out: string[] };
type Row = Record<string, unknown>;

async function readArchive(user: TestUser) {
  const response = await fetch(`${server.baseUrl}/api/v1/users/${user.id}/export`, { headers: { 'x-api-key': key } });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('content-type'), 'application/zip');
  const entries = unzipSync(new Uint8Array(await response.arrayBuffer()));
  const text = (name: string) => Buffer.from(entries[name] ?? '').toString();
  return {
    names: Object.keys(entries),
    text,
    rows: (file: string) =>
      text(`${file}.ndjson`)
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as Row),
    about: JSON.parse(text('export.json')) as About,
  };
}

test('the archive of a user has all that an erasure deletes of them, and nothing of others', async () => {
  const user = await server.provision.user(app);
  const mark = 'zyxwmarkexport';
  await server.db`update users set email = ${`${mark}@example.com`} where id = ${user.uuid}`;
  const ids = await marks.plantForUser(user, mark);
  await marks.plantForUser(await server.provision.user(app), 'othersmark');

  const archive = await readArchive(user);
  const { about, rows, text } = archive;
  assert.equal(archive.names.at(-1), 'export.json');
  assert.deepEqual([about.user, about.app, about.missing_files], [user.id, app.app.id, []]);
  assert.deepEqual(
    archive.names.filter((name) => text(name).includes('othersmark')),
    [],
  );
  const marked = archive.names.filter((name) => text(name).includes(mark)).map((name) => name.split('/')[0]);
  for (const file of ['user', 'agents', 'threads', 'key_value_entries', 'knowledge_documents', 'knowledge_texts'])
    assert.ok(marked.includes(`${file}.ndjson`), `${file}: ${marked}`);
  for (const file of ['automation_runs', 'automation_run_entries', 'model_calls', 'answers', 'sign_in_accounts'])
    assert.ok(marked.includes(`${file}.ndjson`), `${file}: ${marked}`);
  assert.ok(marked.includes('knowledge_versions.ndjson') && marked.includes('knowledge_version_texts.ndjson'));
  const [old] = rows('knowledge_versions');
  assert.deepEqual([old?.number, old?.title, old?.is_deletion], [1, mark, false]);
  const [profile] = rows('user');
  assert.deepEqual([profile?.id, profile?.email, profile?.app_id], [user.id, `${mark}@example.com`, undefined]);
  assert.match(String(profile?.created_at), /^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/);
  const file = rows('files').find(({ id }) => id === ids.file);
  assert.equal(text(String(file?.path)), `${mark} in a file`);
  assert.deepEqual(
    rows('key_value_entries').map(({ key: name, user: owner }) => [name, owner]),
    [
      [`${mark}-one`, user.id],
      [`${mark}-two`, user.id],
    ],
  );
  assert.equal(rows('automation_runs').find(({ id }) => id === ids.run)?.automation, ids.automation);
  assert.ok(rows('audit_entries').length > 0);
  const [{ digest }] = await server.db<[{ digest: Buffer }]>`
    select digest from personal_tokens where user_id = ${user.uuid}`;
  assert.ok(!archive.names.some((name) => text(name).includes(digest.toString('hex'))));

  const read = await server.db`select 1 from audit_entries where action = 'exportUser' and resource = ${user.id}`;
  assert.equal(read.length, 1, 'the audit log says who read the archive');

  const ordered = await server.api<{ id: string }>('POST', '/api/v1/erasures', { key, body: { user: user.id } });
  const path = `/api/v1/erasures/${ordered.body.id}`;
  type Erasure = { status: string; removed: Record<string, number> };
  await until(async () => (await server.api<Erasure>('GET', path, { key })).body.status === 'done');
  const { removed } = (await server.api<Erasure>('GET', path, { key })).body;
  const same: Record<string, string[]> = {
    ...{ users: ['user'], agents: ['agents'], threads: ['threads'], files: ['files'], answers: ['answers'] },
    ...{ sources: ['knowledge_sources'], documents: ['knowledge_documents'], texts: ['knowledge_texts'] },
    ...{ versions: ['knowledge_versions'] },
    ...{ ingestions: ['knowledge_ingestions'], runs: ['automation_runs'], events: ['events'] },
    ...{ journal_entries: ['automation_run_entries'], automations: ['automations'], model_calls: ['model_calls'] },
    ...{ key_value_entries: ['key_value_entries'], sign_in_accounts: ['sign_in_accounts'] },
    ...{ credentials: ['personal_tokens', 'sessions', 'console_sessions', 'assistants'] },
  };
  const exported = (files: string[]) => files.reduce((sum, name) => sum + (about.rows[name] ?? 0), 0);
  for (const [name, files] of Object.entries(same)) assert.equal(exported(files), removed[name] ?? 0, name);
});

test('rows of any size and number are in the archive, in order, and a name cannot leave its folder', async () => {
  const user = await server.provision.user(app);
  await server.db`
    insert into kv_entries (app_id, user_id, key, sandbox_id, id, value)
    select ${app.app.uuid}::uuid, ${user.uuid}::uuid, 'k' || lpad(n::text, 5, '0'),
      '00000000-0000-0000-0000-000000000000', gen_random_uuid(),
      to_json(case when n % 400 = 0 then repeat('x', 700000) else 'v' || n end)::text
    from generate_series(1, 2500) n`;
  const file = await marks.createFile('the contents', { user: user.id });
  await server.db`update files set filename = '../../etc/passwd' where id = ${parseId('file', file)}`;
  const lost = await marks.createFile('lost contents', { user: user.id });
  const [{ blobKey }] = await server.db<[{ blobKey: string }]>`
    select blob_key from files where id = ${parseId('file', lost)}`;
  await server.services.blobs.remove(blobKey);

  const archive = await readArchive(user);
  const found = archive.rows('key_value_entries');
  assert.deepEqual(
    found.map((row) => row.key),
    Array.from({ length: 2_500 }, (_, n) => `k${String(n + 1).padStart(5, '0')}`),
  );
  assert.equal(String(found[399]?.value).length, 700_002);
  assert.equal(archive.text(`files/${file}/.._.._etc_passwd`), 'the contents');
  assert.deepEqual(archive.about.missing_files, [lost]);
});

test('runs that runs of the user started are in the archive, however deep', async () => {
  const user = await server.provision.user(app);
  const [automation] = await server.db<[{ id: string }]>`
    insert into automations (app_id, id, sandbox_id, name, type)
    values (${app.app.uuid}, gen_random_uuid(), '00000000-0000-0000-0000-000000000000', 'deep', 'invoked') returning id`;
  await server.db`
    with ids as (select n, gen_random_uuid() as id from generate_series(1, 5) n)
    insert into automation_runs (app_id, id, sandbox_id, automation_id, type, status, payload, parent_run_id,
      invoked_by_user_id)
    select ${app.app.uuid}, ids.id, '00000000-0000-0000-0000-000000000000', ${automation.id}, 'invoked', 'completed',
      '{}', parent.id, case when ids.n = 1 then ${user.uuid}::uuid end
    from ids left join ids parent on parent.n = ids.n - 1`;
  const quarry = new Quarry({ baseUrl: server.baseUrl, key });
  const entries = unzipSync(new Uint8Array(await (await quarry.users.export(user.id)).arrayBuffer()));
  const about = JSON.parse(Buffer.from(entries['export.json'] ?? '').toString()) as About;
  assert.equal(about.rows.automation_runs, 5);
});

test('each run of a large family is listed once, with statements in proportion to the runs', async () => {
  const list = async (runs: number) => {
    const user = await server.provision.user(app);
    await server.db`
      with automation as (insert into automations (app_id, id, sandbox_id, name, type)
          values (${app.app.uuid}, gen_random_uuid(), ${production}, 'many', 'invoked') returning id),
        ids as (select n, gen_random_uuid() as id from generate_series(1, ${runs}::integer) n)
      insert into automation_runs (app_id, id, sandbox_id, automation_id, type, status, payload, parent_run_id,
        invoked_by_user_id)
      select ${app.app.uuid}, ids.id, ${production}, automation.id, 'invoked', 'completed', '{}', parent.id,
        case when ids.n % 7 = 1 then ${user.uuid}::uuid end
      from automation, ids left join ids parent on parent.n = ids.n / 2`;
    let statements = 0;
    const counted = new Proxy(server.db, {
      apply(db, self, args: unknown[]) {
        // The other calls are parts of these.
        if (/^select t\.id/.test(String(args[0]))) statements += 1;
        return Reflect.apply(db, self, args) as unknown;
      },
    });
    const ids: string[] = [];
    for await (const page of listRunsOfUser(counted, { appId: app.app.uuid, subjectId: user.uuid })) ids.push(...page);
    assert.deepEqual([ids.length, new Set(ids).size], [runs, runs]);
    return statements;
  };
  const [few, many] = [await list(1_000), await list(4_000)];
  assert.ok(many > few && many <= 5 * few, `${few} statements for 1,000 runs, ${many} for 4,000`);
});

test('an archive takes a place among the streams of the app until its reader leaves', async () => {
  const user = await server.provision.user(app);
  const { shares } = server.services.streams;
  // More than the connection's buffers take. Deflate finds no repetition that is so far away.
  await server.db`
    with random as (select to_json(string_agg(md5(random()::text), ''))::text as value from generate_series(1, 20000))
    insert into kv_entries (app_id, user_id, key, sandbox_id, id, value)
    select ${app.app.uuid}::uuid, ${user.uuid}::uuid, 'k' || n, '00000000-0000-0000-0000-000000000000',
      gen_random_uuid(), random.value
    from generate_series(1, 40) n, random`;
  const url = `${server.baseUrl}/api/v1/users/${user.id}/export`;
  const head = await fetch(url, { method: 'HEAD', headers: { 'x-api-key': key } });
  assert.deepEqual(
    [head.status, head.headers.get('content-disposition')],
    [200, `attachment; filename="${user.id}.zip"`],
  );
  const before = shares.taken;
  const reading = get(url, { headers: { 'x-api-key': key } });
  await new Promise((resolve) => reading.once('response', resolve));
  assert.equal(shares.taken, before + 1);
  reading.on('error', () => undefined).destroy();
  await until(() => shares.taken === before);

  // It ends with the credential of its reader, too.
  const made = await server.api<{ id: string; full_key: string }>('POST', '/api/v1/keys', {
    ...{ key, body: { type: 'secret' } },
  });
  const cut = get(url, { headers: { 'x-api-key': made.body.full_key } });
  const [response] = (await once(cut, 'response')) as [IncomingMessage];
  assert.equal((await server.api('DELETE', `/api/v1/keys/${made.body.id}`, { key })).status, 204);
  // A check that has begun before may be in progress.
  for (let checks = 0; checks < 50 && shares.taken > before; checks++) {
    await server.services.streams.endRevoked();
    await server.db`select 1`;
  }
  assert.equal(shares.taken, before);
  const chunks: Buffer[] = [];
  await assert.rejects(async () => {
    for await (const chunk of response) chunks.push(chunk as Buffer);
  });
  assert.ok(!Buffer.concat(chunks).includes('export.json'));
});
