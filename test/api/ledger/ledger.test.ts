import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { sweepAudit } from '../../../src/audit/sweep.ts';
import { type Db, production } from '../../../src/db/database.ts';
import { readHead } from '../../../src/ledger/head.ts';
import { TrustedKeys } from '../../../src/ledger/keys.ts';
import { createLedger, type Ledger } from '../../../src/ledger/seal.ts';
import { listSegments } from '../../../src/ledger/store.ts';
import type { KnownHead } from '../../../src/ledger/verify.ts';
import { formatId, parseId } from '../../../src/lib/ids.ts';
import { Secrets } from '../../../src/tenancy/secrets.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import fc from '../../support/fast-check.ts';
import { headOf, raw, relink, tryOut, verifyAll } from '../../support/ledger.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

let server: TestServer;
let app: TestApp;
let client: AutomationsClient;
let ledger: Ledger;
let scope: { appId: string; sandboxId: string };
let head: KnownHead;
/** Runs that have ended: one with a wait, which has an entry without a link of its own. */
let runs: string[];

before(async () => {
  server = await startTestServer();
  app = await server.provision.app();
  scope = { appId: app.app.uuid, sandboxId: production };
  client = new AutomationsClient(server, app);
  ledger = createLedger(server.services);
  const steps = ['a', 'b', 'c', 'd'].map((id, place, all) => ({
    ...{ id, kind: 'transform', value: { n: place } },
    ...(place < all.length - 1 ? { on_success: all[place + 1] } : {}),
  }));
  const plain = await client.createAutomation({ workflow: graphOf(...steps) });
  const sleeping = await client.createAutomation({
    workflow: graphOf({ id: 'w', kind: 'wait', seconds: 1, on_success: 'a' }, ...steps),
  });
  const begun = await Promise.all([plain, sleeping, plain].map(({ id }) => client.invoke(id)));
  runs = (await Promise.all(begun.map(({ id }) => client.waitForEnd(id)))).map(({ id }) => uuidOf(id));
  await seal();
  for (let n = 0; n < 8; n += 1) await change();
  await seal();
  head = await headOf(server.db, scope);
});
after(() => server.close());

const uuidOf = (id: string) => parseId('automationRun', id) ?? '';
const change = () => server.api('POST', '/api/v1/orgs', { key: app.secretKey, body: { name: 'Org' } });

/** Writes what waits in memory, then seals. */
async function seal(): Promise<void> {
  await server.api('GET', '/api/v1/audit', { key: app.secretKey });
  await ledger.head(scope);
}

const verify = (db: Db = server.db, heads: readonly KnownHead[] = [head]) =>
  verifyAll(db, server.services.secrets, scope, heads);

/** The problems after a change by SQL, which is undone. */
const problemsAfter = (tamper: (tx: Db) => Promise<unknown>) =>
  tryOut(server.db, async (tx) => {
    await tamper(tx);
    return (await verify(tx)).problems.map(({ kind, chain, record, segment }) => {
      const name = record === undefined ? `segment ${segment}` : record;
      return `${kind} ${chain.split(' ')[0]} ${chain.startsWith('journal') ? `${chain.split(' ')[1]} ` : ''}${name}`;
    });
  });

test('an unchanged history is clean, and every entry and record is counted', async () => {
  const { problems, counts } = await verify();
  assert.deepEqual(problems, []);
  assert.equal(counts.runs, 3);
  assert.ok(counts.entries > 20 && counts.records > 10);
  assert.equal(counts.unsealed, 0);
});

test('any entry of the audit log that is changed, removed, inserted or exchanged is named', async () => {
  const ids = (
    await server.db<{ id: string }[]>`select id from audit_entries where app_id = ${scope.appId} order by id`
  ).map(({ id }) => id);
  const columns = {
    at: "at + interval '1 microsecond'",
    ...{ actor_id: 'app_id', credential: "credential || 'x'", action: "action || ' '", method: "'GET'", route: "''" },
    ...{
      resource: "coalesce(resource || 'x', '')",
      status: 'status + 1',
      request_id: "''",
      address: 'null',
      attempts: '1',
    },
  };
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...ids),
      fc.constantFrom(...ids),
      fc.constantFrom('change', 'remove', 'insert', 'exchange', 'unseal', 'move'),
      fc.constantFrom(...(Object.keys(columns) as (keyof typeof columns)[])),
      async (id, other, how, column) => {
        const named = formatId('auditEntry', id);
        const inserted = formatId('auditEntry', otherId(id));
        const found = await problemsAfter(async (tx) => {
          const here = tx`app_id = ${scope.appId} and id = ${id}`;
          if (how === 'change')
            await raw(tx, `update audit_entries set ${column} = ${columns[column]} where id = '${id}'`);
          else if (how === 'remove') await tx`delete from audit_entries where ${here}`;
          else if (how === 'unseal') await tx`update audit_entries set segment = null where ${here}`;
          else if (how === 'move') await tx`update audit_entries set segment = segment + 1 where ${here}`;
          else if (how === 'insert')
            await tx`insert into audit_entries select (jsonb_populate_record(a, jsonb_build_object('id', ${otherId(id)}::text))).*
              from audit_entries a where ${here}`;
          else if (id !== other)
            // Two entries change places in the log.
            await tx`update audit_entries a set at = b.at, action = b.action, resource = b.resource from audit_entries b
              where a.app_id = b.app_id and b.app_id = ${scope.appId} and a.id in (${id}, ${other}) and b.id in (${id}, ${other})
                and a.id <> b.id`;
          else await tx`delete from audit_entries where ${here}`;
        });
        const expected = how === 'insert' ? inserted : named;
        assert.ok(
          found.some((problem) => problem.endsWith(expected)),
          `${how} ${column}: ${JSON.stringify(found)}`,
        );
      },
    ),
    { numRuns: 40 },
  );
});

test('any entry of a journal that is changed, removed, inserted or exchanged is named', async () => {
  const changes = [
    "type = type || 'x'",
    "node_id = coalesce(node_id, '') || 'x'",
    "command_id = 'x'",
    "timer_id = 'x'",
  ].concat([
    "record = (record::text || ' ')::json",
    "created_at = created_at + interval '1 microsecond'",
    'id = gen_random_uuid()',
  ]);
  const lengths = await server.db<{ id: string; sequence: number; unlinked: number[] }[]>`
    select id, sequence, array(select e.sequence from automation_run_entries e
      where e.app_id = r.app_id and e.run_id = r.id and e.link is null) as unlinked
    from automation_runs r where app_id = ${scope.appId}`;
  assert.ok(
    lengths.some(({ unlinked }) => unlinked.length > 0),
    'a fired timer has no link of its own',
  );
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...lengths),
      fc.nat(),
      fc.constantFrom('change', 'remove', 'insert', 'exchange', 'cut', 'relink'),
      fc.constantFrom(...changes),
      async ({ id, sequence, unlinked }, place, how, set) => {
        const at = 1 + (place % sequence);
        const next = at === sequence ? at - 1 : at + 1;
        const found = await problemsAfter(async (tx) => {
          const here = `app_id = '${scope.appId}' and run_id = '${id}' and sequence`;
          if (how === 'change' || how === 'relink')
            await raw(tx, `update automation_run_entries set ${set} where ${here} = ${at}`);
          if (how === 'relink') await relink(tx, scope.appId, id);
          if (how === 'remove') await raw(tx, `delete from automation_run_entries where ${here} = ${at}`);
          if (how === 'cut') {
            await raw(tx, `delete from automation_run_entries where ${here} >= ${at}`);
            await raw(tx, `update automation_runs set sequence = ${at - 1}, linked = ${at - 1} where id = '${id}'`);
          }
          if (how === 'exchange')
            for (const [from, to] of [
              [at, -1],
              [next, at],
              [-1, next],
            ])
              await raw(tx, `update automation_run_entries set sequence = ${to} where ${here} = ${from}`);
          if (how === 'insert') {
            await raw(tx, `update automation_run_entries set sequence = -sequence - 1 where ${here} > ${at}`);
            await raw(tx, `update automation_run_entries set sequence = -sequence where ${here} < 0`);
            await raw(
              tx,
              `insert into automation_run_entries (app_id, run_id, sequence, id, type, record)
                values ('${scope.appId}', '${id}', ${at + 1}, gen_random_uuid(), 'signal_received', '{}')`,
            );
            await raw(tx, `update automation_runs set sequence = sequence + 1 where id = '${id}'`);
          }
        });
        const mine = found.filter((problem) => problem.includes(` ${formatId('automationRun', id)} `));
        assert.ok(mine.length > 0, `${how} ${set} at ${at}: ${JSON.stringify(found)}`);
        // Who also rewrites the links is found at the next anchor.
        if (how === 'relink') return;
        // Entries without a link of their own are named together with the next one.
        const [first = 0, last = first] = (mine[0]?.split(' ').at(-1) ?? '').split('-').map(Number);
        const expected = how === 'insert' ? at + 1 : how === 'exchange' ? Math.min(at, next) : at;
        assert.ok(
          first <= expected && expected <= last && last <= first + 1 + unlinked.length,
          `${how} ${set} at ${at}: ${JSON.stringify(found)}`,
        );
      },
    ),
    { numRuns: 40 },
  );
});

test('a run that is removed, or that was never sealed, is named', async () => {
  const [run = ''] = runs;
  const gone = await problemsAfter(
    (tx) => tx`delete from automation_runs where app_id = ${scope.appId} and id = ${run}`,
  );
  assert.deepEqual(gone, [`removed ledger ${formatId('automationRun', run)}`]);
  const anchorless = await problemsAfter(
    (tx) => tx`delete from run_anchors where app_id = ${scope.appId} and run_id = ${run}`,
  );
  assert.ok(anchorless.some((one) => one.startsWith('removed ledger')));
  assert.ok(
    anchorless.some((one) => one.startsWith('inserted journal')),
    JSON.stringify(anchorless),
  );
});

test('a segment that is changed, removed, cut off or signed by an unknown key is named', async () => {
  const at = (number: number) => `app_id = '${scope.appId}' and number = ${number}`;
  const after = (statement: string) => problemsAfter((tx) => raw(tx, statement));
  for (const set of [
    "detail = 'x'",
    "kind = 'retention'",
    'records = records + 1',
    "sealed_at = sealed_at + interval '1 s'",
    'list = set_byte(list, 30, get_byte(list, 30) # 1)',
    'list = null',
    'previous = list_digest',
    'signature = set_byte(signature, 3, get_byte(signature, 3) # 1)',
  ]) {
    const found = await after(`update ledger_segments set ${set} where ${at(2)}`);
    assert.ok(found.includes('segment_changed ledger segment 2'), `${set}: ${JSON.stringify(found)}`);
  }
  assert.ok((await after(`delete from ledger_segments where ${at(2)}`)).includes('segment_removed ledger segment 2'));
  const cut = await problemsAfter(async (tx) => {
    await raw(tx, `delete from ledger_segments where ${at(head.number)}`);
    await raw(
      tx,
      `update ledgers set number = number - 1, digest = (select sha256('x') ) where app_id = '${scope.appId}'`,
    );
  });
  assert.ok(cut.includes(`truncated ledger segment ${head.number}`));
  const foreign = await after(`update ledger_segments set key_id = 'x' where ${at(1)}`);
  assert.ok(foreign.includes('signature ledger segment 1'));
});

test('the head of another history is refused', async () => {
  const { problems } = await verify(server.db, [{ number: head.number, digest: Buffer.alloc(32) }]);
  assert.deepEqual(
    problems.map(({ kind, segment }) => [kind, segment]),
    [['head', head.number]],
  );
});

function otherId(id: string): string {
  return `${id.slice(0, -4)}${id.endsWith('0000') ? '0001' : '0000'}`;
}

test('removals by retention and deletions are signed, and verification stays clean', async () => {
  const own = await server.provision.app();
  const at = { appId: own.app.uuid, sandboxId: production };
  const clock = new ManualClock();
  const later = createLedger({ ...server.services, clock });
  const mine = new AutomationsClient(server, own);
  const check = (heads: KnownHead[] = []) => verifyAll(server.db, server.services.secrets, at, heads);
  const { id } = await mine.createAutomation({ workflow: graphOf({ id: 'a', kind: 'trigger' }) });
  const run = await mine.waitForEnd((await mine.invoke(id)).id);
  await server.api('GET', '/api/v1/audit', { key: own.secretKey });
  await later.head(at);
  const exported = await headOf(server.db, at);

  // A deletion by SQL is not one by the API.
  const gone = await tryOut(server.db, async (tx) => {
    await tx`delete from automations where app_id = ${at.appId}`;
    return verifyAll(tx, server.services.secrets, at);
  });
  assert.deepEqual(
    gone.problems.map(({ kind, record }) => [kind, record]),
    [['removed', run.id]],
  );
  await mine.call('DELETE', `/automations/${id}`);
  const deleted = await check([exported]);
  assert.deepEqual([deleted.problems, deleted.counts.removed], [[], 1]);

  const entries = await server.db<{ id: string }[]>`select id from audit_entries where app_id = ${at.appId}`;
  clock.advance(91 * 24 * 3_600_000);
  await sweepAudit({ db: server.db, clock, ledger: later, daysKept: 90 });
  await server.db`select 1 from audit_entries where app_id = ${at.appId}`.then((rows) => assert.equal(rows.length, 0));
  const retained = await check([exported]);
  assert.deepEqual(retained.problems, []);
  assert.ok(retained.counts.removed > entries.length - 2);
});

test('a verification checks each signature once, and only the statements that it needs', async () => {
  const own = await server.provision.app();
  const at = { appId: own.app.uuid, sandboxId: production };
  const mine = new AutomationsClient(server, own);
  const sealing = createLedger(server.services);
  const { id } = await mine.createAutomation({ workflow: graphOf({ id: 'a', kind: 'trigger' }) });
  await mine.waitForEnd((await mine.invoke(id)).id);
  await sealing.head(at);
  for (let n = 0; n < 20; n += 1) await sealing.noteDeletion(at, { kind: 'automation', id: randomUUID() });
  await mine.call('DELETE', `/automations/${id}`);
  for (let n = 0; n < 20; n += 1) await sealing.noteDeletion(at, { kind: 'automation', id: randomUUID() });
  let checked = 0;
  class CountingKeys extends TrustedKeys {
    override verify(...given: Parameters<TrustedKeys['verify']>): boolean {
      checked += 1;
      return super.verify(...given);
    }
  }
  const { problems, counts } = await verifyAll(server.db, server.services.secrets, at, [], CountingKeys);
  assert.deepEqual([problems, counts.removed], [[], 1]);
  assert.ok(counts.segments > 40);
  assert.ok(checked <= counts.segments + 1, `${checked} signatures of ${counts.segments} segments`);
});

test('deleting a user, a team or a sandbox states which automations go with it', async () => {
  const own = await server.provision.app();
  const user = await server.provision.user(own);
  const team = await server.api<{ id: string }>('POST', '/api/v1/teams', {
    key: own.secretKey,
    body: { name: 'Team' },
  });
  const sandbox = await server.api<{ id: string }>('POST', '/api/v1/sandboxes', {
    key: own.secretKey,
    body: { name: 'Sandbox' },
  });
  const key = await server.api<{ full_key: string }>('POST', '/api/v1/keys', {
    key: own.secretKey,
    body: { type: 'secret', sandbox: sandbox.body.id },
  });
  const workflow = graphOf({ id: 'a', kind: 'trigger' });
  for (const [kind, id, secretKey, owner] of [
    ['user', user.id, own.secretKey, { user: user.id }],
    ['team', team.body.id, own.secretKey, { team: team.body.id }],
    ['sandbox', sandbox.body.id, key.body.full_key, {}],
  ] as const) {
    const at = { appId: own.app.uuid, sandboxId: kind === 'sandbox' ? (parseId('sandbox', id) ?? '') : production };
    const mine = new AutomationsClient(server, { secretKey });
    const owned = await mine.createAutomation({ workflow, ...owner });
    const run = await mine.waitForEnd((await mine.invoke(owned.id)).id);
    await createLedger(server.services).head(at);
    const path = kind === 'sandbox' ? 'sandboxes' : `${kind}s`;
    assert.equal((await server.api('DELETE', `/api/v1/${path}/${id}`, { key: own.secretKey })).status, 204);
    // A sandbox is purged by a job.
    await until(async () => (await server.db`select from automation_runs where id = ${uuidOf(run.id)}`).length === 0);
    const { problems, counts } = await verifyAll(server.db, server.services.secrets, at);
    assert.deepEqual(problems, [], kind);
    assert.ok(counts.removed > 0, kind);
  }
});

test('a new root secret signs with a new key and vouches for the old one', async () => {
  const own = await server.provision.app();
  const at = { appId: own.app.uuid, sandboxId: production };
  const org = () => server.api('POST', '/api/v1/orgs', { key: own.secretKey, body: { name: 'Org' } });
  const { db } = server;
  const old = server.services.config.secret ?? '';
  await org();
  await createLedger({ ...server.services, secrets: new Secrets(old) }).head(at);
  await org();
  const second = new Secrets('second secret', old);
  await createLedger({ ...server.services, secrets: second }).head(at);
  await org();
  const third = new Secrets('third secret', 'second secret');
  await createLedger({ ...server.services, secrets: third }).head(at);
  const ids = await db`select distinct key_id from ledger_segments where app_id = ${at.appId}`;
  assert.equal(ids.length, 3);
  // Only the newest key is known.
  assert.deepEqual((await verifyAll(db, new Secrets('third secret'), at)).problems, []);
  // A key that nobody vouches for may be in the table, and counts for nothing.
  const forged = await tryOut(db, async (tx) => {
    await tx`update ledger_keys set endorsement = sha256('x') where endorsed_by is not null`;
    return verifyAll(tx, third, at);
  });
  assert.ok(forged.problems.length > 0 && forged.problems.every(({ kind }) => kind === 'signature'));
});

test('records from before the ledger are sealed from its start, in their order', async () => {
  const own = await server.provision.app();
  const at = { appId: own.app.uuid, sandboxId: production };
  const mine = new AutomationsClient(server, own);
  const { id } = await mine.createAutomation({
    workflow: graphOf({ id: 'w', kind: 'wait_for_signal', name: 'go' }),
  });
  const [ended, waiting] = [await mine.invoke(id), await mine.invoke(id)];
  for (const run of [ended, waiting]) await mine.waitUntilWaiting(run.id);
  await mine.call('POST', `/automation_runs/${ended.id}/signal`, { name: 'go' });
  await mine.waitForEnd(ended.id);
  await server.api('GET', '/api/v1/audit', { key: own.secretKey });
  // As a release without the ledger has left them.
  await server.db.begin(async (tx) => {
    await tx`update automation_run_entries set link = null where app_id = ${at.appId}`;
    await tx`update automation_runs set link = null, linked = 0 where app_id = ${at.appId}`;
    for (const table of ['run_anchors', 'ledgers', 'ledger_segments'])
      await tx`delete from ${tx(table)} where app_id = ${at.appId}`;
    await tx`update audit_entries set segment = null where app_id = ${at.appId}`;
    await tx`insert into ledger_inheritance values (${nil}, ${nil})`;
  });
  const unlinked = await verifyAll(server.db, server.services.secrets, at);
  assert.deepEqual(unlinked.problems, []);
  await createLedger(server.services).sealAll();
  const [first] = await listSegments(server.db, at, 0, 1);
  assert.equal(first?.kind, 'start');
  // The waiting run resumes, and its next link covers the earlier entries.
  await mine.call('POST', `/automation_runs/${waiting.id}/signal`, { name: 'go' });
  await mine.waitForEnd(waiting.id);
  await createLedger(server.services).head(at);
  const { problems, counts } = await verifyAll(server.db, server.services.secrets, at);
  assert.deepEqual([problems, counts.runs], [[], 2]);
  for (const run of [ended, waiting]) {
    const found = await tryOut(server.db, async (tx) => {
      await tx`update automation_run_entries set node_id = 'x' where app_id = ${at.appId} and run_id = ${uuidOf(run.id)} and sequence = 1`;
      return verifyAll(tx, server.services.secrets, at);
    });
    assert.ok(found.problems.some(({ chain }) => chain.endsWith(run.id)));
  }
});

test('two processes that seal at the same time write one chain', async () => {
  const own = await server.provision.app();
  const at = { appId: own.app.uuid, sandboxId: production };
  const ledgers = [1, 2, 3].map(() => createLedger(server.services));
  await Promise.all(
    Array.from({ length: 12 }, async (_, n) => {
      await server.api('POST', '/api/v1/orgs', { key: own.secretKey, body: { name: 'Org' } });
      await ledgers[n % 3]?.head(at);
    }),
  );
  await ledgers[0]?.head(at);
  const { problems, counts } = await verifyAll(server.db, server.services.secrets, at);
  assert.deepEqual([problems, counts.records, counts.unsealed], [[], 12, 0]);
});

const nil = '00000000-0000-0000-0000-000000000000';

type Head = { app: string; segment: number; digest: string; public_key: string };
type Part = { problems: unknown[]; counts: { records: number }; next_cursor?: string };

test('the head and a verification are for callers who may read the audit log, each for their own scope', async () => {
  const own = await server.provision.app();
  const { api } = server;
  const key = { key: own.secretKey };
  await api('POST', '/api/v1/orgs', { ...key, body: { name: 'Org' } });
  const head = await api<Head & Parameters<typeof readHead>[0]>('GET', '/api/v1/ledger', key);
  assert.equal(head.status, 200, head.text);
  assert.equal(head.body.app, own.app.id);
  // Everything that the signature covers is there.
  assert.equal(readHead(head.body)?.number, head.body.segment);
  assert.equal(readHead({ ...head.body, records: 99 }), undefined);
  const base = `/protected/api/v1/developer/apps/${own.app.id}`;
  const first = await api<Head>('GET', `${base}/ledger?segment=1`, { token: own.developerToken });
  assert.deepEqual([first.status, first.body.segment], [200, 1]);
  assert.equal((await api('GET', '/api/v1/ledger?segment=99', key)).status, 404);
  assert.equal((await api('GET', '/api/v1/ledger?segment=0', key)).status, 422);

  const seen: string[] = [];
  let records = 0;
  for (let cursor: string | undefined = ''; cursor !== undefined; ) {
    const part: { body: Part } = await api<Part>(
      'GET',
      `/api/v1/ledger/verification?cursor=${cursor}`.replace(/\?cursor=$/, ''),
      key,
    );
    assert.deepEqual(part.body.problems, []);
    records += part.body.counts.records;
    cursor = part.body.next_cursor;
    seen.push(cursor ?? '');
  }
  assert.equal(records, 1);
  assert.equal(seen.at(-1), '');
  for (const cursor of ['x', 'segments.', 'segments.x', `audit.${'0'.repeat(36)}`, 'runs.1', "segments.1'"]) {
    const { status, body } = await api<ErrorBody>('GET', `/api/v1/ledger/verification?cursor=${cursor}`, key);
    assert.deepEqual([status, body.error.code], [400, 'invalid_cursor'], cursor);
  }
});
