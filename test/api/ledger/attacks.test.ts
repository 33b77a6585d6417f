import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Database, type Db, production } from '../../../src/db/database.ts';
import {
  decodeItems,
  digestFields,
  encodeHeader,
  encodeItems,
  type Item,
  sha256,
} from '../../../src/ledger/encoding.ts';
import { endorsementText, signingKeys } from '../../../src/ledger/keys.ts';
import { createLedger } from '../../../src/ledger/seal.ts';
import { findRecords, listSegments, saveKey } from '../../../src/ledger/store.ts';
import type { KnownHead } from '../../../src/ledger/verify.ts';
import { parseId } from '../../../src/lib/ids.ts';
import { Secrets } from '../../../src/tenancy/secrets.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { headOf, raw, relink, tryOut, verifyAll } from '../../support/ledger.ts';
import { startTestServer } from '../../support/server.ts';

/* Attackers who write to the database, know how digests are computed, and have no key. */

const server = await startTestServer();
after(() => server.close());
const app = await server.provision.app();
const scope = { appId: app.app.uuid, sandboxId: production };
const ledger = createLedger(server.services);
const client = new AutomationsClient(server, app);
const ended = await client.runGraph(graphOf({ id: 'one', kind: 'transform', value: { paid: false } }));
const run = parseId('automationRun', ended.id) ?? '';
await client.runGraph(graphOf({ id: 'one', kind: 'fail', message: 'No: \n "é"' }));
const waiting = await client.createAutomation({
  workflow: graphOf({ id: 'one', kind: 'wait_for_signal', name: 'go' }),
});
const cancelled = await client.invoke(waiting.id);
await client.waitUntilWaiting(cancelled.id);
await client.call('POST', `/automation_runs/${cancelled.id}/cancel`);
for (let n = 0; n < 3; n += 1) {
  await server.api('POST', '/api/v1/orgs', { key: app.secretKey, body: { name: 'Org' } });
  await server.api('GET', '/api/v1/audit', { key: app.secretKey });
  await ledger.head(scope);
}
const head = await headOf(server.db, scope);

const verify = (db: Db, heads: readonly KnownHead[]) => verifyAll(db, server.services.secrets, scope, heads);

test('an attacker without the key who also rewrites what proves the change is found', async () => {
  const other = await server.provision.app();
  const theirs = { appId: other.app.uuid, sandboxId: production };
  await server.api('POST', '/api/v1/orgs', { key: other.secretKey, body: { name: 'Org' } });
  await server.api('GET', '/api/v1/audit', { key: other.secretKey });
  await ledger.head(theirs);
  const [own] = (await listSegments(server.db, scope, 0, 100)).filter(({ kind }) => kind === 'audit');
  assert.ok(own);
  const { number } = own;
  const mine = `app_id = '${scope.appId}' and sandbox_id = '${scope.sandboxId}'`;
  const attacks: Record<string, [found: RegExp, tamper: (tx: Db) => Promise<unknown>]> = {
    'a changed entry, with its digest, its list and the digest of the list computed again': [
      /^segment_changed ledger/,
      async (tx) => {
        const [entry] = decodeItems(own.list ?? Buffer.of());
        await tx`update audit_entries set action = 'x' where id = ${entry?.id ?? ''}`;
        const [changed] = await findRecords(tx, 'audit', scope, decodeItems(own.list ?? Buffer.of()).slice(0, 1));
        const items = decodeItems(own.list ?? Buffer.of());
        const list = encodeItems([
          { ...(items[0] as Item), digest: digestFields(changed?.fields ?? []) },
          ...items.slice(1),
        ]);
        await tx`update ledger_segments set list = ${list}, list_digest = ${sha256(list)}
          where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId} and number = ${number}`;
      },
    ],
    'the same, signed with a key of the attacker that vouches for itself': [
      /^signature ledger/,
      async (tx) => {
        const [key] = signingKeys(new Secrets('a root secret that the attacker made up by himself'));
        assert.ok(key);
        await saveKey(tx, { ...key, endorsedBy: key.id, endorsement: key.sign(endorsementText(key.publicKey)) });
        const forged = { ...own, keyId: key.id };
        await tx`update ledger_segments set key_id = ${key.id}, signature = ${key.sign(encodeHeader(forged))}
          where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId} and number = ${number}`;
      },
    ],
    'segments of another app in the place of its own': [
      /^segment_changed ledger 1$/,
      async (tx) => {
        await raw(tx, `delete from ledger_segments where ${mine}`);
        await raw(tx, `update ledger_segments set app_id = '${scope.appId}' where app_id = '${theirs.appId}'`);
        await raw(
          tx,
          `update ledgers set (number, digest) = (select number, digest from ledgers
          where app_id = '${theirs.appId}') where ${mine}`,
        );
      },
    ],
    'a segment repeated under the next number': [
      /^segment_changed ledger/,
      (tx) =>
        raw(
          tx,
          `insert into ledger_segments select (s).* from (select jsonb_populate_record(l, jsonb_build_object('number',
          ${head.number + 1})) as s from ledger_segments l where ${mine} and number = ${number}) as one`,
        ),
    ],
    'a ledger that was cut off, with its end computed again, its records unsealed again': [
      /^truncated ledger/,
      (tx) => rollBack(tx, head.number - 1),
    ],
    'a ledger that does not exist any more, nor a record of it': [
      /^truncated ledger/,
      async (tx) => {
        for (const table of ['ledger_segments', 'ledgers', 'audit_entries', 'run_anchors', 'automation_runs'])
          await raw(tx, `delete from ${table} where ${mine}`);
      },
    ],
    'a run that is sealed as ended, active again with another end': [
      /^inserted journal$/,
      async (tx) => {
        await appendEntry(tx, run, 'run_failed');
        await raw(tx, `update automation_runs set status = 'running' where id = '${run}'`);
      },
    ],
    'the same, as a run from before the ledger': [
      /^inserted journal$/,
      async (tx) => {
        await appendEntry(tx, run, 'signal_received');
        await raw(tx, `delete from ledger_inheritance`);
        await raw(tx, `insert into ledger_inheritance values ('${production}', '${production}')`);
      },
    ],
    'a run that shows another result than its journal': [
      /^changed journal$/,
      (tx) => raw(tx, `update automation_runs set result = '{"paid": true}' where id = '${run}'`),
    ],
    'a run that shows another status than its journal': [
      /^changed journal$/,
      (tx) => raw(tx, `update automation_runs set status = 'failed', result = null where id = '${run}'`),
    ],
  };
  for (const [name, [expected, tamper]] of Object.entries(attacks)) {
    const found = await tryOut(server.db, async (tx) => {
      await tamper(tx);
      const { problems } = await verify(tx, [head]);
      return problems.map(({ kind, chain, segment = '' }) => `${kind} ${chain.split(' ', 1)[0]} ${segment}`.trim());
    });
    assert.ok(
      found.some((problem) => expected.test(problem)),
      `${name}: ${JSON.stringify(found)}`,
    );
  }
});

test('a ledger that is rolled back and sealed again differs from the head that was exported before', async () => {
  const found = await tryOut(server.db, async (tx) => {
    await rollBack(tx, head.number - 1);
    const again = createLedger({ ...server.services, db: sameTransaction(tx) });
    // The server itself signs the fork: it does not know the history that is gone.
    const fork = await again.head(scope);
    assert.ok(fork.number >= head.number);
    const forkHead = { number: fork.number, digest: sha256(encodeHeader(fork)) };
    const kinds = async (heads: KnownHead[]) =>
      (await verify(tx, heads)).problems.map(({ kind, segment }) => `${kind} ${segment}`);
    return { alone: await kinds([]), fork: await kinds([forkHead]), both: await kinds([head, forkHead]) };
  });
  // Only the head from before shows that there were two histories; neither history shows it by itself.
  assert.deepEqual(found, { alone: [], fork: [], both: [`head ${head.number}`] });
});

/** Cuts a ledger off after a segment, as a backup of that time would: what was sealed later waits for it again. */
async function rollBack(tx: Db, number: number): Promise<void> {
  const here = `app_id = '${scope.appId}' and sandbox_id = '${scope.sandboxId}'`;
  const end = (await listSegments(tx, scope, number - 1, 1))[0];
  assert.ok(end);
  await raw(tx, `delete from ledger_segments where ${here} and number > ${number}`);
  await tx`update ledgers set number = ${number}, digest = ${sha256(encodeHeader(end))}
    where app_id = ${scope.appId} and sandbox_id = ${scope.sandboxId}`;
  for (const table of ['audit_entries', 'run_anchors'])
    await raw(tx, `update ${table} set segment = null where ${here} and segment > ${number}`);
}

/** Adds an entry to a journal as its writer would, with its link. */
async function appendEntry(tx: Db, run: string, type: string): Promise<void> {
  await raw(
    tx,
    `insert into automation_run_entries (app_id, run_id, sequence, id, type, record)
      select app_id, id, sequence + 1, gen_random_uuid(), '${type}', '{}' from automation_runs where id = '${run}'`,
  );
  await raw(tx, `update automation_runs set sequence = sequence + 1 where id = '${run}'`);
  await relink(tx, scope.appId, run);
}

/** A database whose transactions are part of this one. */
function sameTransaction(tx: Db): Database {
  return Object.assign((...given: unknown[]) => Reflect.apply(tx as never, undefined, given), tx, {
    begin: (work: (inner: Db) => Promise<unknown>) => work(tx),
  }) as unknown as Database;
}
