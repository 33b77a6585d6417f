import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { tables } from '../../../src/db/tables.ts';
import { type Certificate, findErasureById } from '../../../src/erasures/store.ts';
import { eraseRows } from '../../../src/erasures/workflow.ts';
import { createLedger } from '../../../src/ledger/seal.ts';
import { findSigner } from '../../../src/ledger/statement.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { planted, type Subject } from '../../support/erasures.ts';
import { knowledgeOf } from '../../support/knowledge.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const server = await startTestServer({ env: { QUARRY_BACKUP_DAYS: '30' } });
after(() => server.close());
const world = await server.provision.world();
const { app } = world;
const org = { org: world.org.id };
const knowledge = knowledgeOf(server, { key: app.secretKey });
const marks = planted(server, app);

type Erasure = { id: string; status: string; removed: Record<string, number> };

async function eraseAndWait(subject: Subject): Promise<{ erasure: Erasure; certificate: Certificate }> {
  const ordered = await knowledge.send<Erasure>('POST', '/erasures', subject);
  assert.equal(ordered.status, 202, ordered.text);
  const path = `/erasures/${ordered.body.id}`;
  await until(async () => (await knowledge.send<Erasure>('GET', path)).body.status === 'done');
  const { body: certificate } = await knowledge.send<Certificate>('GET', `${path}/certificate`);
  return { erasure: (await knowledge.send<Erasure>('GET', path)).body, certificate };
}

const originsOf = ({ statement }: Certificate) =>
  statement.receivers.filter(({ kind }) => kind === 'origin').map(({ name }) => name);

test('a user is erased from every table, from the blobs and from the index, and others keep what is theirs', async () => {
  const mark = 'zyxwmarkuser';
  const user = await server.provision.user(app);
  await server.db`update users set email = ${`${mark}@example.com`}, name = ${mark}, metadata = ${server.db.json({ mark })} where id = ${user.uuid}`;
  const ids = await marks.plantForUser(user, mark);
  const other = await server.provision.user(app);
  await marks.plantForUser(other, 'othersmark');
  assert.ok((await marks.findRows(mark)).length >= 10, 'the marks are there before');
  assert.equal((await marks.findBlobs(mark)).length, 1);
  const kept = await marks.countRows('othersmark');

  const { erasure, certificate } = await eraseAndWait({ user: user.id });

  assert.deepEqual(await marks.findRows(mark), []);
  assert.deepEqual(await marks.findBlobs(mark), []);
  assert.equal(await marks.countRows('othersmark'), kept);
  const named = await marks.findRows(user.uuid);
  assert.deepEqual(
    named.filter((table) => !['ids', 'expires'].includes(tables[table]?.erasure ?? '') && table !== 'events'),
    [],
  );
  for (const name of [
    'users',
    'sources',
    'documents',
    'chunks',
    'texts',
    'versions',
    'vectors',
    'files',
    'runs',
    'journal_entries',
  ])
    assert.ok((erasure.removed[name] ?? 0) > 0, `${name}: ${JSON.stringify(erasure.removed)}`);
  assert.equal(erasure.removed.key_value_entries, 2);
  assert.deepEqual(certificate.statement.removed, erasure.removed);
  assert.equal(certificate.statement.user, user.id);
  assert.equal((await knowledge.send('GET', `/users/${user.id}`)).status, 404);
  assert.equal((await knowledge.send('GET', `/files/${ids.file}`)).status, 404);
  assert.equal((await server.api('GET', '/api/v1/files', { token: user.token })).status, 401);
});

test('a certificate is signed, and says what remains where and until when', async () => {
  const user = await server.provision.user(app);
  const { certificate } = await eraseAndWait({ user: user.id });
  assert.ok(findSigner('quarry:erasure:1', certificate));
  assert.equal(findSigner('quarry:citations:1', certificate), undefined);
  const changed = { ...certificate, statement: { ...certificate.statement, removed: { users: 2 } } };
  assert.equal(findSigner('quarry:erasure:1', changed), undefined);
  const { completed_at, remains } = certificate.statement;
  const day = (days: number) => new Date(Date.parse(completed_at) + days * 86_400_000).toISOString().slice(0, 10);
  const until = Object.fromEntries(remains.map((each) => [each.what, each.until]));
  assert.equal(until.audit_entries, day(90));
  assert.equal(until.backups, day(30));
  assert.equal(until.data_pages, undefined);
  assert.ok(existsSync(join(server.dataDir, 'erasures', `${certificate.statement.erasure}.json`)));
  assert.deepEqual(
    readdirSync(join(server.dataDir, 'erasures')).filter((name) => name.includes('unfinished')),
    [],
  );
});

test('a document is erased with its words, and the rest of its source stays searchable', async () => {
  const source = await knowledge.createSource(org);
  const file = await marks.createFile('zyxwmarkdoc lies here');
  const ingested = await knowledge.ingest(source, { file });
  const document = ingested.metadata.document ?? '';
  await knowledge.push(source, 'The walrus sleeps on the berth.');
  assert.ok((await marks.findRows('zyxwmarkdoc')).includes('knowledge_texts'));

  const { erasure, certificate } = await eraseAndWait({ document, files: true });

  assert.deepEqual(await marks.findRows('zyxwmarkdoc'), []);
  assert.deepEqual(await marks.findBlobs('zyxwmarkdoc'), []);
  assert.equal((await knowledge.send('GET', `/knowledge_documents/${document}`)).status, 404);
  assert.deepEqual([erasure.removed.documents, erasure.removed.chunks, erasure.removed.files], [1, 1, 1]);
  assert.equal((await knowledge.search(source, { query: 'walrus', mode: 'fulltext' })).length, 1);
  assert.equal(certificate.statement.document, document);
  // Who pushed it did not receive it from here.
  assert.deepEqual(originsOf(certificate), []);
});

test('versions are erased with their document, even after it was deleted, and with their source', async () => {
  const source = await knowledge.createSource({ ...org, version_retention_days: 30 });
  const write = async (file: string, document?: string) => {
    const [method, path] = document ? ['PATCH', `documents/${document}`] : ['POST', `sources/${source}/ingest`];
    const started = await knowledge.send<{ id: string }>(method ?? '', `/knowledge_${path}`, { file });
    return (await knowledge.waitForIngestion(started.body.id)).metadata.document ?? '';
  };
  const mark = 'zyxwmarkversion';
  const plant = async (name: string) => {
    const document = await write(await marks.createFile(`${mark}${name} before`));
    await write(await marks.createFile(`now ${name}`), document);
    return document;
  };
  const [live, deleted, kept] = [await plant('one'), await plant('two'), await plant('three')];
  await knowledge.send('DELETE', `/knowledge_documents/${deleted}`);
  const removed = async (subject: Subject) => {
    const { documents = 0, versions = 0, files = 0 } = (await eraseAndWait(subject)).erasure.removed;
    return { documents, versions, files };
  };
  assert.deepEqual(await removed({ document: live, files: true }), { documents: 1, versions: 1, files: 2 });
  assert.deepEqual(await marks.findRows(`${mark}one`), []);
  assert.deepEqual(await removed({ document: deleted, files: true }), { documents: 0, versions: 2, files: 2 });
  assert.deepEqual(await marks.findRows(`${mark}two`), []);
  assert.equal((await knowledge.send('GET', `/knowledge_documents/${deleted}/versions`)).status, 404);
  assert.equal((await knowledge.send('POST', '/erasures', { document: deleted })).status, 422);
  assert.equal((await knowledge.send('GET', `/knowledge_documents/${kept}/versions/1`)).status, 200);
  assert.deepEqual(await removed({ source, files: true }), { documents: 1, versions: 1, files: 2 });
  assert.deepEqual([await marks.findRows(mark), await marks.findBlobs(mark)], [[], []]);
});

test('a source is erased with its index, and its files stay unless they are named', async () => {
  const source = await knowledge.createSource(org);
  const file = await marks.createFile('zyxwmarksource in a file');
  await knowledge.ingest(source, { file });
  for (let i = 0; i < 40; i += 1) await knowledge.push(source, `zyxwmarksource number ${i}`);
  assert.equal((await knowledge.send('POST', `/knowledge_sources/${source}/syncs`, { mode: 'full' })).status, 201);
  const { erasure, certificate } = await eraseAndWait({ source });
  assert.deepEqual(await marks.findRows('zyxwmarksource'), []);
  assert.equal((await knowledge.send('GET', `/knowledge_sources/${source}`)).status, 404);
  assert.equal((await knowledge.send('GET', `/files/${file}`)).status, 200);
  assert.ok(certificate.statement.remains.some(({ what }) => what === 'files'));
  assert.deepEqual([erasure.removed.documents, erasure.removed.sources], [41, 1]);
  assert.ok((erasure.removed.postings ?? 0) > 0);
  // Where its connector reads, everything still is.
  assert.deepEqual(originsOf(certificate), [source]);
});

test('runs of an erased user are missing from the ledger as it states, and a verification finds nothing', async () => {
  const user = await server.provision.user(app);
  const automations = new AutomationsClient(server, app);
  const { id: automation } = await automations.createAutomation({
    workflow: graphOf({ id: 'end', kind: 'complete', result: '{{$.mark}}' }),
  });
  const started = await server.api<{ id: string }>('POST', `/api/v1/automations/${automation}/invoke`, {
    ...{ token: user.token, body: { payload: { mark: 'zyxwmarkrun' } } },
  });
  assert.ok(started.status < 300, started.text);
  await automations.waitForEnd(started.body.id);
  await knowledge.send('GET', '/ledger');
  await eraseAndWait({ user: user.id });
  assert.equal((await knowledge.send('GET', `/automation_runs/${started.body.id}`)).status, 404);
  assert.deepEqual(await marks.findRows('zyxwmarkrun'), []);
  const verified = await knowledge.send<{ problems: unknown[] }>('GET', '/ledger/verification');
  assert.deepEqual(verified.body.problems, []);
});

test('exactly one subject, which the caller must see, and one erasure of it at a time', async () => {
  const user = await server.provision.user(app);
  const source = await knowledge.createSource(org);
  const post = (body: object) => knowledge.send<{ error: { code: string } }>('POST', '/erasures', body);
  assert.equal((await post({})).status, 422);
  assert.equal((await post({ user: user.id, source })).status, 422);
  assert.equal((await post({ user: source })).status, 422);
  const elsewhere = await server.provision.app();
  const foreign = await server.api('POST', '/api/v1/erasures', { key: elsewhere.secretKey, body: { user: user.id } });
  assert.equal(foreign.status, 422);
  const { appId, sandboxId } = { appId: app.app.uuid, sandboxId: '00000000-0000-0000-0000-000000000000' };
  await server.db`
    insert into erasures (app_id, sandbox_id, id, subject_kind, subject_id, created_at)
    values (${appId}, ${sandboxId}, gen_random_uuid(), 'user', ${user.uuid}, now())`;
  assert.equal((await post({ user: user.id })).status, 409);
  const [running] = (await knowledge.send<{ data: Erasure[] }>('GET', '/erasures')).body.data;
  assert.equal((await knowledge.send('GET', `/erasures/${running?.id}/certificate`)).status, 409);
  await server.db`delete from erasures where app_id = ${appId} and subject_id = ${user.uuid}`;
});

test('an erasure that is interrupted after each of its transactions deletes and counts everything once', async () => {
  const idle = await startTestServer({ env: { QUARRY_JOB_WORKERS: '0' } });
  try {
    const own = await idle.provision.app();
    const user = await idle.provision.user(own);
    const appId = own.app.uuid;
    const rows = 1_200;
    await idle.db`
      insert into kv_entries (app_id, user_id, key, sandbox_id, id, value)
      select ${appId}::uuid, ${user.uuid}::uuid, 'k' || n, '00000000-0000-0000-0000-000000000000', gen_random_uuid(), 'v'
      from generate_series(1, ${rows}::integer) n`;
    // A run of the user with more children than a batch has, each of which started another.
    const nobody = '00000000-0000-0000-0000-000000000000';
    await idle.db`
      with automation as (
        insert into automations (app_id, id, sandbox_id, name, type)
        values (${appId}, gen_random_uuid(), ${nobody}, 'family', 'invoked') returning id),
      family as (select n, gen_random_uuid() as id, case when n <= 121 then 1 else n - 120 end as parent
        from generate_series(1, 241) n)
      insert into automation_runs (app_id, id, sandbox_id, automation_id, type, status, payload, parent_run_id,
        invoked_by_user_id)
      select ${appId}, f.id, ${nobody}, automation.id, 'invoked', 'completed', '{}',
        case when f.n > 1 then p.id end, case when f.n = 1 then ${user.uuid}::uuid end
      from family f join family p on p.n = f.parent, automation`;
    for (let i = 0; i < 3; i += 1)
      await idle.api('POST', '/api/v1/files', {
        token: user.token,
        body: { filename: 'x.txt', content_type: 'text/plain', data: 'eA==' },
      });
    const { body } = await idle.api<Erasure>('POST', '/api/v1/erasures', {
      key: own.secretKey,
      body: { user: user.id },
    });
    const id = parseId('erasure', body.id) ?? '';
    const { services } = idle;
    const ledger = createLedger({ db: idle.db, secrets: services.secrets, clock: services.clock });
    const deps = {
      db: idle.db,
      clock: services.clock,
      ledger,
      services: { embedderUrl: undefined, tracesUrl: undefined },
    };
    let interruptions = 0;
    for (let isDone = false; !isDone; ) {
      const stop = new AbortController();
      const erasure = await findErasureById(idle.db, appId, id);
      assert.ok(erasure);
      // Aborted from the start: the work throws after the first transaction that deletes something.
      if (interruptions < 30) stop.abort(new Error('stop'));
      await eraseRows(deps, erasure, stop.signal).then(
        () => {
          isDone = true;
        },
        () => {
          interruptions += 1;
        },
      );
    }
    assert.ok(interruptions >= 10, `${interruptions} interruptions`);
    const counts = (await findErasureById(idle.db, appId, id))?.counts;
    assert.deepEqual([counts?.key_value_entries, counts?.files, counts?.users, counts?.runs], [rows, 3, 1, 241]);
    const [left] = await idle.db`select count(*)::integer as runs from automation_runs where app_id = ${appId}`;
    assert.equal(left?.runs, 0);
  } finally {
    await idle.close();
  }
});

test('after ANALYZE and VACUUM FULL, the data files have nothing of an erased user', async () => {
  const mark = 'zyxwmarkpages';
  const user = await server.provision.user(app);
  await marks.plantForUser(user, mark);
  await server.db`vacuum analyze`;
  await server.db`checkpoint`;
  const before = await marks.findDataFiles(mark);
  assert.ok(before.length > 0, 'the mark is in the data files before');
  await eraseAndWait({ user: user.id });
  // Statistics of the planner repeat common values. They are in a table of their own, which is rewritten afterwards.
  await server.db`analyze`;
  // While a statement that began earlier runs, `vacuum` keeps what it may still see.
  await until(async () => {
    await server.db`vacuum full`;
    await server.db`checkpoint`;
    return (await marks.findDataFiles(mark)).length === 0;
  });
});
