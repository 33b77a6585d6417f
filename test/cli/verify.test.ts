import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { SignedStatement } from '../../src/answers/statement.ts';
import { production } from '../../src/db/database.ts';
import { createLedger } from '../../src/ledger/seal.ts';
import { callQuarry } from '../support/command.ts';
import { operatorOf } from '../support/operator.ts';
import { startTestServer } from '../support/server.ts';

const server = await startTestServer();
const { quarry, close } = await operatorOf(server);
const work = mkdtempSync(join(tmpdir(), 'quarry-verify-work-'));
after(async () => {
  await close();
  await server.close();
  rmSync(work, { recursive: true, force: true, maxRetries: 5 });
});

const { db, services } = server;
const { app, secretKey: key } = await server.provision.app();
const scope = { appId: app.uuid, sandboxId: production };
const ledger = createLedger({ db, secrets: services.secrets, clock: services.clock });

test('an exported head proves that a database or a backup is unchanged, and names what was changed', async () => {
  for (const name of ['a', 'b', 'c']) await server.api('POST', '/api/v1/orgs', { key, body: { name } });
  await ledger.head(scope);
  const file = join(work, 'heads.json');
  assert.equal((await quarry('heads', '--out', file)).code, 0);
  const exported = JSON.parse(readFileSync(file, 'utf8')) as { heads: { app: string; digest: string }[] };
  assert.equal(exported.heads[0]?.app, app.id);
  const clean = await quarry('verify', '--head', file);
  assert.deepEqual([clean.code, clean.stderr], [0, '']);
  assert.match(
    clean.stdout,
    /^1 ledger, 1 exported head, \d+ segments, \d+ records, 0 journals, 0 entries verified;.*\nNothing was changed\.$/m,
  );

  const backup = join(work, 'backup');
  assert.equal((await quarry('backup', backup)).code, 0);
  const restored = await quarry('verify', '--backup', backup, '--head', file, '--json');
  assert.equal(restored.code, 0, restored.stdout + restored.stderr);
  assert.equal(JSON.parse(restored.stdout).result, 'unchanged');

  await db`update audit_entries set action = 'deleteOrg' where app_id = ${scope.appId} and action = 'createOrg'
    and id = (select min(id::text)::uuid from audit_entries where app_id = ${scope.appId} and action = 'createOrg')`;
  const changed = await quarry('verify', '--head', file);
  assert.equal(changed.code, 1);
  assert.match(changed.stdout, /^changed ledger dap_\w+ sbx_\w+, aud_\w+, segment \d+: The entry was changed\.$/m);
  assert.match(changed.stdout, /^1 problem$/m);
  // The backup is from before.
  assert.equal((await quarry('verify', '--backup', backup, '--head', file)).code, 0);

  const forged = { ...exported.heads[0], records: 7 };
  writeFileSync(join(work, 'forged.json'), JSON.stringify(forged));
  const refused = await quarry('verify', '--head', join(work, 'forged.json'));
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /is not an exported head, or it was changed/);
  assert.equal((await quarry('verify', '--trust', 'x')).code, 2);
});

test('a signed statement about quotes is verified without a database, by a key that the reader trusts', async () => {
  const body = { quotes: ['words that no document says'] };
  const { body: signed } = await server.api<SignedStatement>('POST', '/api/v1/citations/verify', { key, body });
  const file = join(work, 'citations.json');
  writeFileSync(file, JSON.stringify(signed));
  const own = await quarry('verify', '--citations', file);
  assert.deepEqual([own.code, own.stderr], [0, '']);
  assert.match(own.stdout, /unchanged, signed with [0-9a-f]{16} at .*: 1 quote \(1 not_found\)$/m);

  // Another machine does not have the root secret.
  const env = { QUARRY_SECRET: randomBytes(32).toString('base64url'), QUARRY_DATA_DIR: work };
  const unknown = await callQuarry(['verify', '--citations', file], { env });
  assert.equal(unknown.code, 1);
  assert.match(unknown.stdout, /not a trusted key/);
  const named = await callQuarry(['verify', '--citations', file, '--trust', signed.public_key], { env });
  assert.equal(named.code, 0, named.stdout + named.stderr);

  writeFileSync(file, JSON.stringify(signed).replace('not_found', 'exact'));
  const changed = await quarry('verify', '--citations', file, '--json');
  assert.equal(changed.code, 1);
  assert.match(JSON.parse(changed.stdout).problem, /does not match its signature/);
  writeFileSync(file, '{}');
  assert.equal((await quarry('verify', '--citations', file)).code, 2);
});
