import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { findCredentialsFile } from '../../src/credentials-file.ts';
import { openDatabase, production } from '../../src/db/database.ts';
import { findEmbeddedPostgres } from '../../src/db/embedded.ts';
import { parseId } from '../../src/ids.ts';
import { createLedger } from '../../src/ledger/seal.ts';
import { findSecret } from '../../src/services.ts';
import { Secrets } from '../../src/tenancy/secrets.ts';
import { runQuarry } from '../support/command.ts';
import { startServe } from '../support/serve.ts';
import { sendRequest } from '../support/server.ts';

const dataDir = mkdtempSync(join(tmpdir(), 'quarry-verify-test-'));
const work = mkdtempSync(join(tmpdir(), 'quarry-verify-work-'));
const env = { QUARRY_DATA_DIR: dataDir, QUARRY_LOG_LEVEL: 'silent' };
const serve = await startServe(env);
const target = findEmbeddedPostgres(dataDir);
assert.ok(target);
const db = openDatabase(target, { poolSize: 1, applicationName: 'quarry-test' });
after(async () => {
  await db.end();
  await serve.stop();
  for (const directory of [dataDir, work]) rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
});

const credentials = findCredentialsFile(dataDir);
assert.ok(credentials);
const scope = { appId: parseId('app', credentials.app) ?? '', sandboxId: production };
const ledger = createLedger({ db, secrets: new Secrets(findSecret(dataDir) ?? ''), clock: systemClock });
const quarry = (...args: string[]) => runQuarry(args, { env });

test('an exported head proves that a database or a backup is unchanged, and names what was changed', async () => {
  const key = credentials.secret_key;
  for (const name of ['a', 'b', 'c']) await sendRequest(serve.baseUrl, 'POST', '/api/v1/orgs', { key, body: { name } });
  await ledger.head(scope);
  const file = join(work, 'heads.json');
  assert.equal((await quarry('heads', '--out', file)).code, 0);
  const exported = JSON.parse(readFileSync(file, 'utf8')) as { heads: { app: string; digest: string }[] };
  assert.equal(exported.heads[0]?.app, credentials.app);
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
