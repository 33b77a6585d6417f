import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { pruneRuns } from '../../../src/automations/retention/prune.ts';
import { production } from '../../../src/db/database.ts';
import { deleteEndedExtractions } from '../../../src/extractions/store.ts';
import { createLedger } from '../../../src/ledger/seal.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf, type Run } from '../../support/automations.ts';
import { tryOut, verifyAll } from '../../support/ledger.ts';
import { operatorOf } from '../../support/operator.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const server = await startTestServer();
const operator = await operatorOf(server);
after(async () => {
  await operator.close();
  await server.close();
});
const ledger = createLedger(server.services);
const { db, clock, secrets } = server.services;

const uuidOf = (id: string) => parseId('automationRun', id) ?? '';
const quick = graphOf({ id: 'a', kind: 'transform', value: { n: 1 } });
const failing = graphOf({ id: 'a', kind: 'fail', code: 'no', message: 'no' });

async function createApp() {
  const app = await server.provision.app();
  const client = new AutomationsClient(server, app);
  const scope = { appId: app.app.uuid, sandboxId: production };
  return {
    ...{ app, client, scope },
    /** Runs that ended so many days ago, oldest first. */
    async runs(automation: { id: string }, ...days: number[]): Promise<string[]> {
      const ids: string[] = [];
      for (const age of days) {
        const { id } = await client.waitForEnd((await client.invoke(automation.id)).id);
        await ageRun(id, age);
        ids.push(id);
      }
      return ids;
    },
    prune: (dryRun = false) =>
      pruneRuns({ db, clock, ledger, deleteExtractions: deleteEndedExtractions }, { appId: app.app.uuid, dryRun }),
    /** Those of these runs that still exist. */
    async left(ids: readonly string[]): Promise<string[]> {
      const found = await Promise.all(
        ids.map(async (id) => (await client.call('GET', `/automation_runs/${id}`)).status),
      );
      return ids.filter((_id, index) => found[index] === 200);
    },
    async verify() {
      await ledger.head(scope);
      return verifyAll(db, secrets, scope);
    },
  };
}

async function ageRun(id: string, days: number): Promise<void> {
  await db`
    update automation_runs set created_at = now() - make_interval(days => ${days}),
      completed_at = case when completed_at is not null then now() - make_interval(days => ${days}) end
    where id = ${uuidOf(id)}`;
}

test('runs are kept for ever unless their automation or the app says otherwise', async () => {
  const { client, runs, prune, left } = await createApp();
  const automation = await client.createAutomation({ workflow: quick });
  const ids = await runs(automation, 5_000);
  assert.deepEqual(await prune(), { runs: 0, entries: 0, bytes: 0, extractions: 0, files: 0 });
  assert.deepEqual(await left(ids), ids);
});

test('completed runs go after `days` and failed ones after `failed_days`, and the ledger states which', async () => {
  const { client, runs, prune, left, verify } = await createApp();
  const retention = { days: 10, failed_days: 30 };
  const good = await client.createAutomation({ workflow: quick, retention });
  const bad = await client.createAutomation({ workflow: failing, retention });
  const ids = [...(await runs(good, 31, 11, 9)), ...(await runs(bad, 31, 11, 9))];
  const [oldest, older] = ids as [string, string];
  const before = await verify();
  assert.deepEqual(before.problems, []);

  const counted = await prune(true);
  assert.deepEqual(await left(ids), ids);
  assert.equal(counted.runs, 3);
  assert.ok(counted.entries > 0 && counted.bytes > 0);
  assert.deepEqual(await prune(), counted);
  assert.deepEqual(await left(ids), [ids[2], ids[4], ids[5]]);
  for (const path of [`/automation_runs/${oldest}/journal`, `/automation_runs/${older}`])
    assert.equal((await client.call('GET', path)).status, 404);
  const [{ entries }] = await db<[{ entries: number }]>`
    select count(*) as entries from automation_run_entries where run_id = any(${[oldest, older].map(uuidOf)}::uuid[])`;
  assert.equal(entries, 0);
  assert.equal((await prune()).runs, 0);

  const { problems, counts } = await verify();
  assert.deepEqual(problems, []);
  assert.ok(counts.removed >= 3);
});

test('only the newest runs are kept, counted for each automation, and none goes within a day', async () => {
  const { client, runs, prune, left } = await createApp();
  const retention = { runs: 2 };
  const [one, two] = [
    await client.createAutomation({ workflow: quick, retention }),
    await client.createAutomation({ workflow: quick, retention }),
  ];
  const mine = await runs(one, 5, 4, 3, 2);
  const others = await runs(two, 9, 8);
  await prune();
  assert.deepEqual(await left(mine), mine.slice(2));
  assert.deepEqual(await left(others), others);
  const young = await runs(one, 0, 0, 0);
  await prune();
  assert.deepEqual(await left([...mine, ...young]), young);
});

test('an automation replaces what the app says, and `{}` keeps its runs', async () => {
  const { app, client, runs, prune, left } = await createApp();
  const path = `/protected/api/v1/developer/apps/${app.app.id}`;
  const token = app.developerToken;
  const set = await server.api('PATCH', path, { token, body: { run_retention: { days: 3 } } });
  assert.deepEqual([set.status, set.body.run_retention], [200, { days: 3 }]);
  const plain = await client.createAutomation({ workflow: quick });
  const kept = await client.createAutomation({ workflow: quick, retention: {} });
  const ids = [...(await runs(plain, 4, 2)), ...(await runs(kept, 4))];
  await prune();
  assert.deepEqual(await left(ids), ids.slice(1));
  const cleared = await client.call('PATCH', `/automations/${kept.id}`, { retention: null });
  assert.deepEqual([cleared.status, cleared.body.retention], [200, undefined]);
  await prune();
  assert.deepEqual(await left(ids), [ids[1]]);
  const unset = await server.api('PATCH', path, { token, body: { run_retention: null } });
  assert.deepEqual([unset.status, unset.body.run_retention], [200, undefined]);
  await ageRun(ids[1] as string, 40);
  await prune();
  assert.deepEqual(await left(ids), [ids[1]]);
});

test('a retention that keeps failed runs for a shorter time, or has other members, is 422', async () => {
  const { app, client } = await createApp();
  for (const [retention, field] of [
    [{ days: 10, failed_days: 9 }, 'retention.failed_days'],
    [{ runs: 10, failed_runs: 9 }, 'retention.failed_runs'],
    [{ days: 0 }, 'retention.days'],
    [{ hours: 1 }, 'retention.hours'],
    [{ files: 'all' }, 'retention.files'],
  ] as const) {
    const body = { name: 'x', type: 'invoked', retention };
    const refused = await client.call<ErrorBody>('POST', '/automations', body);
    assert.equal(refused.status, 422, refused.text);
    assert.equal(refused.body.error.fields?.[0]?.field, field);
    const path = `/protected/api/v1/developer/apps/${app.app.id}`;
    const options = { token: app.developerToken, body: { run_retention: retention } };
    assert.equal((await server.api('PATCH', path, options)).status, 422);
  }
});

test('the ancestors of an active run stay: parents, and runs that it continues', async () => {
  const { client, runs, prune, left } = await createApp();
  const retention = { days: 1 };
  const waiting = graphOf({ id: 'w', kind: 'wait_for_signal', name: 'go' });
  const child = await client.createAutomation({ workflow: waiting, retention });
  const parent = await client.createAutomation({
    retention,
    workflow: graphOf({ id: 'p', kind: 'run_automation', automation: child.id, payload: {} }),
  });
  const { id: parentId } = await client.invoke(parent.id);
  await client.waitUntilWaiting(parentId);
  // As if the parent had ended without its child.
  await db`update automation_runs set status = 'failed', completed_at = now() where id = ${uuidOf(parentId)}`;
  await ageRun(parentId, 9);
  const once = await client.createAutomation({ workflow: quick, retention });
  const [first, second] = (await runs(once, 9, 9)) as [string, string];
  await client.call('PATCH', `/automations/${once.id}`, { workflow: waiting });
  const again = await client.call<Run>('POST', `/automation_runs/${first}/retry`, {});
  assert.equal(again.status, 201, again.text);
  await client.waitUntilWaiting(again.body.id);
  await prune();
  assert.deepEqual(await left([parentId, first, second]), [parentId, first]);

  await client.call('POST', `/automation_runs/${again.body.id}/cancel`);
  await prune();
  assert.deepEqual(await left([parentId, first, again.body.id]), [parentId, again.body.id]);
});

test('extractions of deleted runs go with them, and the files that they wrote are kept', async () => {
  const { app, client, runs, prune } = await createApp();
  const body = { filename: 'a.txt', content_type: 'text/plain', data: 'aGVsbG8=' };
  const file = await server.api<{ id: string }>('POST', '/api/v1/files', { key: app.secretKey, body });
  const automation = await client.createAutomation({
    retention: { days: 1 },
    workflow: graphOf({
      ...{ id: 'e', kind: 'extract', file: file.body.id, destination_kind: 'storage', destination_path: 'out' },
    }),
  });
  await runs(automation, 9);
  const list = async (what: string) => (await client.call<{ data: unknown[] }>('GET', `/${what}`)).body.data.length;
  const [extractions, files] = [await list('extractions'), await list('files')];
  assert.equal(extractions, 1);
  assert.equal((await prune()).extractions, 1);
  assert.deepEqual([await list('extractions'), await list('files')], [0, files]);
});

test('with `files`, the files that only deleted runs made go with them, and others stay', async () => {
  const { app, client, runs, prune } = await createApp();
  const retention = { days: 1, files: true };
  const write = { kind: 'file_write', filename: 'a.txt', content_type: 'text/plain', data: 'aGVsbG8=' };
  const automation = await client.createAutomation({
    retention,
    workflow: graphOf(
      { ...write, id: 'w', on_success: 'e' },
      { id: 'e', kind: 'extract', file: '{{$nodes.w.id}}', destination_kind: 'storage', destination_path: 'out' },
    ),
  });
  const ids = await runs(automation, 9, 9, 9, 9, 9, 9);
  const files: string[] = [];
  for (const id of ids) {
    const end = (await client.journal(id)).find(({ type, node_id: node }) => type === 'node_completed' && node === 'w');
    assert.ok(end);
    files.push((end.record.payload as { id: string }).id);
  }
  const [alone, changed, named, shown, input, ingested] = files as [string, string, string, string, string, string];
  const exists = async (file: string) => (await client.call('GET', `/files/${file}`)).status === 200;
  const total = async () => (await client.call<{ total_entries: number }>('GET', '/files')).body.total_entries;
  const must = async (method: string, path: string, body?: unknown) => {
    const done = await client.call<{ id: string }>(method, path, body);
    assert.ok(done.status < 300, done.text);
    return done.body;
  };
  await must('PATCH', `/files/${changed}`, { acl: { grants: [{ principal_type: 'everyone', actions: ['read'] }] } });
  const reader = await client.createAutomation({ workflow: quick, retention });
  const { id: readerRun } = await client.waitForEnd(
    (await client.invoke(reader.id, { payload: { see: `/files/${named}` } })).id,
  );
  const teller = await client.createAutomation({
    retention,
    workflow: graphOf({ id: 't', kind: 'transform', value: { of: { file: shown } } }),
  });
  const [tellerRun] = (await runs(teller, 0)) as [string];
  await must('POST', '/extractions', { file: input, destination_kind: 'storage' });
  const { id: user } = await server.provision.user(app);
  const source = await must('POST', '/knowledge_sources', { type: 'knowledge/documents', user });
  await must('POST', `/knowledge_sources/${source.id}/ingest`, { file: ingested });
  const plain = await client.createAutomation({ workflow: graphOf({ ...write, id: 'w' }), retention: { days: 1 } });
  await runs(plain, 9);

  const before = await total();
  const counted = await prune(true);
  assert.equal(await total(), before);
  // Each run also wrote an output of its extraction, which goes with it.
  assert.deepEqual([counted.runs, counted.extractions, counted.files], [7, 6, 7]);
  assert.deepEqual(await prune(), counted);
  assert.equal(await total(), before - 7);
  assert.deepEqual(await Promise.all(files.map(exists)), [false, true, true, true, true, true]);
  assert.equal(await exists(alone), false);

  // The last run that names a file takes it along.
  await ageRun(readerRun, 9);
  await ageRun(tellerRun, 9);
  assert.equal((await prune()).files, 2);
  assert.deepEqual(await Promise.all(files.map(exists)), [false, true, false, false, true, true]);
});

test('a dry run counts files and extractions that runs of several batches share, in any order', async () => {
  const { client, runs, prune } = await createApp();
  const must = async <T>(call: Promise<{ status: number; text: string; body: T }>): Promise<T> => {
    const { status, text, body } = await call;
    assert.ok(status < 300, text);
    return body;
  };
  const write = { id: 'w', kind: 'file_write', filename: 'a.txt', content_type: 'text/plain', data: 'aGVsbG8=' };
  const extract = {
    id: 'e',
    kind: 'extract',
    file: '{{$.file}}',
    destination_kind: 'storage',
    destination_path: 'out',
  };
  const takes = { days: 1, files: true };
  // Automations are pruned in the order in which they were created.
  const before = await client.createAutomation({ retention: takes, workflow: graphOf(extract) });
  const maker = await client.createAutomation({ retention: takes, workflow: graphOf(write) });
  const after = await client.createAutomation({ retention: takes, workflow: graphOf(extract) });
  const keeper = await client.createAutomation({ retention: { days: 1 }, workflow: quick });
  const made = await runs(maker, 9, 9, 9, 9, 9);
  const fileOf = async (run: string) =>
    (await must(client.call<{ data: { id: string }[] }>('GET', `/files?automation_run=${run}`))).data.map(
      ({ id }) => id,
    );
  const files = (await Promise.all(made.map(fileOf))).flat();
  const read = async (automation: { id: string }, file: string | undefined, days: number) => {
    const { id } = await client.waitForEnd((await client.invoke(automation.id, { payload: { file } })).id);
    await ageRun(id, days);
    return id;
  };
  await read(before, files[0], 9);
  await read(after, files[1], 9);
  await read(before, files[2], 9);
  await read(after, files[2], 9);
  // Its last run keeps files; this one is not old enough.
  await read(keeper, files[3], 9);
  await read(before, files[4], 0);

  const counted = await prune(true);
  assert.deepEqual([counted.runs, counted.extractions, counted.files], [10, 4, 3 + 4]);
  assert.deepEqual(await prune(), counted);
});

test('the files that a run made are listed: its own, and those of the extractions that it started', async () => {
  const { app, client, runs } = await createApp();
  const write = { kind: 'file_write', filename: 'a.txt', content_type: 'text/plain', data: 'aGVsbG8=' };
  const automation = await client.createAutomation({
    workflow: graphOf(
      { ...write, id: 'w', on_success: 'e' },
      { id: 'e', kind: 'extract', file: '{{$nodes.w.id}}', destination_kind: 'storage', destination_path: 'out' },
    ),
  });
  const [first, second] = (await runs(automation, 1, 1)) as [string, string];
  const list = async (run: string, as: { key?: string; token?: string } = { key: app.secretKey }) => {
    const { status, body } = await server.api<{ data: { id: string; filename: string }[] }>(
      'GET',
      `/api/v1/files?automation_run=${run}`,
      as,
    );
    return status === 200 ? body.data.map(({ id, filename }) => ({ id, filename })) : status;
  };
  const made = await list(first);
  assert.ok(Array.isArray(made));
  assert.deepEqual(made.map(({ filename }) => filename).sort(), ['a.txt', 'out/a.md']);
  const others = await list(second);
  assert.ok(Array.isArray(others) && !others.some(({ id }) => made.some((one) => one.id === id)));

  // Reading a file does not make it.
  const reader = await client.createAutomation({
    workflow: graphOf({ id: 't', kind: 'transform', value: made[0]?.id }),
  });
  const [readerRun] = (await runs(reader, 1)) as [string];
  assert.deepEqual(await list(readerRun), []);
  assert.equal((await client.call('DELETE', `/files/${made[0]?.id}`)).status, 204);
  assert.deepEqual(await list(first), made.slice(1));
});

test('a caller who may not see a run learns nothing of its files, and a key needs to read both', async () => {
  const { app, client, runs } = await createApp();
  const { id: user, token } = await server.provision.user(app);
  const grants = [{ principal_type: 'everyone', actions: ['read'] }];
  const write = { id: 'w', kind: 'file_write', filename: 'a.txt', content_type: 'text/plain', data: 'aGVsbG8=' };
  const [hidden] = (await runs(await client.createAutomation({ workflow: graphOf(write) }), 1)) as [string];
  const [own] = (await runs(await client.createAutomation({ workflow: graphOf(write), user }), 1)) as [string];
  const path = (run: string) => `/api/v1/files?automation_run=${run}`;
  const ask = (run: string, as: { key?: string; token?: string }) =>
    server.api<{ data: { id: string }[] }>('GET', path(run), as);
  for (const run of [hidden, own])
    for (const { id } of (await ask(run, { key: app.secretKey })).body.data)
      assert.equal((await client.call('PATCH', `/files/${id}`, { acl: { grants } })).status, 200);
  const seen = async (run: string) => (await ask(run, { token })).body.data.length;
  assert.deepEqual([await seen(hidden), await seen(own)], [0, 1]);
  const wrong = await server.api<ErrorBody>('GET', path('fil_1'), { key: app.secretKey });
  assert.deepEqual([wrong.status, wrong.body.error.fields?.[0]?.field], [422, 'automation_run']);
  for (const [scopes, status] of [
    [['files'], 403],
    [['files:read', 'automations:read'], 200],
  ] as const) {
    const made = await server.api<{ full_key: string }>('POST', '/api/v1/keys', {
      key: app.secretKey,
      body: { type: 'secret', name: 'some', scopes },
    });
    assert.equal((await ask(own, { key: made.body.full_key })).status, status, made.text);
  }
});

test('many files of one run are deleted batch by batch before the run', async () => {
  const { app, client, runs, prune, left } = await createApp();
  const write = { id: 'w', kind: 'file_write', filename: 'a.txt', content_type: 'text/plain', data: 'aGVsbG8=' };
  const automation = await client.createAutomation({
    workflow: graphOf(write),
    retention: { days: 5, files: true },
  });
  const ids = await runs(automation, 9);
  const count = async () => (await db`select 1 from files where app_id = ${app.app.uuid}`).length;
  await db`
    with copies as (
      insert into files (app_id, id, sandbox_id, filename, content_type, size, checksum, blob_key)
      select app_id, new_uuid(), sandbox_id, filename, content_type, size, checksum, app_id || '/' || new_uuid()
      from files, generate_series(1, 2500) where app_id = ${app.app.uuid} returning app_id, id)
    insert into automation_run_files (app_id, run_id, file_id, made)
    select app_id, ${uuidOf(ids[0] ?? '')}::uuid, id, true from copies`;
  assert.equal(await count(), 2_501);
  assert.equal((await prune(true)).files, 2_501);
  const pruned = await prune();
  assert.deepEqual([pruned.runs, pruned.files], [1, 2_501]);
  assert.deepEqual([await count(), await left(ids)], [0, []]);
});

test('a run that is missing without a statement is found, and one that returns after it', async () => {
  const { client, runs, prune, verify, scope } = await createApp();
  const automation = await client.createAutomation({ workflow: quick, retention: { days: 5 } });
  const [gone, kept] = (await runs(automation, 9, 2)) as [string, string];
  await verify();
  const [copy] = await db`select to_jsonb(r) as run from automation_runs r where id = ${uuidOf(gone)}`;
  await prune();
  await verify();
  const [{ segment }] = await db<[{ segment: number }]>`
    select removed_in as segment from run_anchors where run_id = ${uuidOf(gone)}`;
  const removed = await tryOut(db, async (tx) => {
    await tx`delete from automation_runs where id = ${uuidOf(kept)}`;
    await tx`update run_anchors set removed_in = ${segment} where run_id = ${uuidOf(kept)}`;
    return verifyAll(tx, secrets, scope);
  });
  assert.ok(removed.problems.some(({ kind, record }) => kind === 'removed' && record === kept));
  const returned = await tryOut(db, async (tx) => {
    await tx`
      insert into automation_runs select * from jsonb_populate_record(null::automation_runs, ${JSON.stringify(copy?.run)}::text::jsonb)`;
    return verifyAll(tx, secrets, scope);
  });
  assert.ok(returned.problems.some(({ kind, record }) => kind === 'inserted' && record === gone));
});

test('an automation that is deleted takes its runs along batch by batch, not in one transaction', async () => {
  const { client } = await createApp();
  const { id } = await client.createAutomation({ workflow: graphOf({ id: 'done', kind: 'complete' }) });
  const run = await client.invoke(id, { idempotency_key: 'k' });
  await client.waitForEnd(run.id);
  const automationId = parseId('automation', id) ?? '';
  await server.db`
    insert into automation_runs (app_id, id, sandbox_id, automation_id, graph_version, type, status, payload)
    select app_id, gen_random_uuid(), sandbox_id, automation_id, graph_version, type, status, payload
    from automation_runs, generate_series(1, 2500) where automation_id = ${automationId}`;
  const left = async () => (await server.db`select from automation_runs where automation_id = ${automationId}`).count;
  let deleted: Promise<{ status: number }> | undefined;
  await server.db.begin(async (tx) => {
    const locked = await tx`select from automation_invocations where automation_id = ${automationId} for update`;
    assert.equal(locked.count, 1);
    deleted = client.call('DELETE', `/automations/${id}`);
    await until(async () => (await left()) === 0);
  });
  assert.equal((await deleted)?.status, 204);
  assert.equal((await client.call('GET', `/automations/${id}`)).status, 404);
});

test('a page of many old runs is deleted batch by batch, and a changed setting ends it', async () => {
  const { client, runs, prune, left } = await createApp();
  const automation = await client.createAutomation({ workflow: quick, retention: { days: 5 } });
  const [old] = (await runs(automation, 50)) as [string];
  await db`
    insert into automation_runs (app_id, id, sandbox_id, automation_id, type, status, payload, completed_at, created_at)
    select app_id, new_uuid(), sandbox_id, automation_id, type, 'completed', '{}', now() - interval '9 days',
      now() - interval '9 days' from automation_runs, generate_series(1, 500) where id = ${uuidOf(old)}`;
  assert.equal((await prune(true)).runs, 501);
  assert.equal((await prune()).runs, 501);
  assert.deepEqual(await left([old]), []);
});

test('`quarry prune --dry-run` shows what `quarry prune` deletes', async () => {
  const { app, client, runs, left } = await createApp();
  const automation = await client.createAutomation({ workflow: quick, name: 'Bills', retention: { days: 5 } });
  const ids = await runs(automation, 9, 2);
  const shown = await operator.quarry('prune', '--dry-run', '--app', app.app.id);
  assert.equal(shown.code, 0, shown.stderr);
  assert.match(
    shown.stdout,
    new RegExp(`^${app.app.id} ${automation.id} Bills: 1 run, \\d+ entries of \\d+ bytes, 0 `),
  );
  assert.match(shown.stdout, /\n1 run, .* would be deleted\n$/);
  assert.deepEqual(await left(ids), ids);
  const done = await operator.quarry('prune', '--app', app.app.id);
  assert.match(done.stdout, /\n1 run, .* deleted\n$/);
  assert.deepEqual(await left(ids), [ids[1]]);
  assert.equal((await operator.quarry('prune', '--app', 'nobody')).code, 2);
});
