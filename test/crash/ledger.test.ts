import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { production } from '../../src/db/database.ts';
import { Secrets } from '../../src/tenancy/secrets.ts';
import { killInWrite } from '../support/kill-in-write.ts';
import { startKillableServer } from '../support/killable-server.ts';
import { headOf, verifyAll } from '../support/ledger.ts';

const server = await startKillableServer('ledger');
after(() => server.close());
const { db, send, appId, secret } = server;

test('a process killed while it seals leaves no partial segment, and the next process continues the ledger', async () => {
  const scope = { appId, sandboxId: production };
  const seal = () => send('GET', '/ledger');
  const change = async () => assert.equal((await send('POST', '/orgs', { name: 'Org' })).status, 201);
  const verify = (heads = [head]) => verifyAll(db, new Secrets(secret), scope, heads);
  const unsealed = async () => (await db`select 1 from audit_entries where segment is null`).length;

  await change();
  await seal();
  const head = await headOf(db, scope);
  await change();
  // The segment is written, but its records are not updated.
  await killInWrite(db, server.serve, { table: 'audit_entries', column: 'segment' }, seal);
  assert.equal((await headOf(db, scope)).number, head.number);
  assert.deepEqual((await verify()).problems, []);
  const waiting = await unsealed();
  assert.ok(waiting > 0);

  await server.restart();
  await change();
  await seal();
  const next = await headOf(db, scope);
  assert.ok(next.number > head.number);
  const { problems, counts } = await verify([head, next]);
  assert.deepEqual([problems, counts.unsealed], [[], 0]);
});
