import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { loadTables } from '../../backup/load-tables.ts';
import { findSecret } from '../../boot/services.ts';
import { type Config, readConfig } from '../../config/config.ts';
import { type Database, openDatabase } from '../../db/database.ts';
import { findCluster, startEmbeddedPostgres } from '../../db/embedded.ts';
import { requireMigrated } from '../../db/migrate.ts';
import { presentHead } from '../../ledger/head.ts';
import { signingKeys, TrustedKeys } from '../../ledger/keys.ts';
import { findLastSegment, listKeys, listLedgers } from '../../ledger/store.ts';
import { verifyLedger } from '../../ledger/verify.ts';
import { parseId } from '../../lib/ids.ts';
import { createLogger, type Logger } from '../../lib/log.ts';
import type { Scope } from '../../tenancy/caller.ts';
import { Secrets } from '../../tenancy/secrets.ts';
import { UsageError } from '../errors.ts';
import { Report, readHeadFiles } from '../ledger-report.ts';
import { withArchive } from './backup.ts';
import { verifyCertificates, verifyStatements } from './verify-statements.ts';
import { withDatabase } from './with-database.ts';

export type VerifyOptions = {
  head?: string[];
  backup?: string;
  trust?: string[];
  app?: string;
  citations?: string[];
  erasures?: string[];
  json?: boolean;
};

const scopesPageMax = 100;
/** The tables that a verification reads. */
const ledgerTables = [
  ...['ledgers', 'ledger_segments', 'ledger_keys', 'ledger_inheritance', 'run_anchors'],
  ...['audit_entries', 'automation_runs', 'automation_run_entries'],
];

/** Verifies the ledgers of the configured database or of a backup. Returns exit code 1 when something was changed. */
export async function verify(options: VerifyOptions): Promise<number> {
  const heads = readHeadFiles(options.head ?? []);
  const pinned = (options.trust ?? []).map((text) => {
    if (!/^[0-9a-f]{64}$/.test(text)) throw new UsageError(`"${text}" is not a public key: 64 hexadecimal digits.`);
    return Buffer.from(text, 'hex');
  });
  if (options.citations !== undefined || options.erasures !== undefined) {
    const trusted = [...ownKeys(readConfig()), ...pinned, ...heads.map(({ publicKey }) => publicKey)];
    const { citations = [], erasures = [], json = false } = options;
    const cited = verifyStatements(citations, trusted, json);
    return Math.max(cited, verifyCertificates(erasures, trusted, json));
  }
  const appId = options.app === undefined ? undefined : parseId('app', options.app);
  if (options.app !== undefined && appId === undefined)
    throw new UsageError(`"${options.app}" is not the id of an app.`);
  const config = readConfig();
  const report = new Report(options.json === true);
  const work = async (db: Database) => {
    const trusted = new TrustedKeys(
      [...ownKeys(config), ...pinned, ...heads.map(({ publicKey }) => publicKey)],
      await listKeys(db),
    );
    let ledgers = 0;
    for await (const scope of scopesOf(db, heads)) {
      if (appId !== undefined && scope.appId !== appId) continue;
      ledgers += 1;
      const own = heads.filter((head) => head.appId === scope.appId && head.sandboxId === scope.sandboxId);
      for await (const page of verifyLedger(db, { ...scope, trusted, heads: own })) report.add(page);
    }
    return report.end(ledgers, heads.length);
  };
  if (options.backup !== undefined) return withBackup(options.backup, work);
  return onDatabase(config, work);
}

/** Prints the heads of every ledger and the public keys, or writes them to a new file. */
export async function heads({ out }: { out?: string }): Promise<number> {
  return onDatabase(readConfig(), async (db) => {
    const keys = await listKeys(db);
    const found = [];
    for await (const scope of scopesOf(db, [])) {
      const last = await findLastSegment(db, scope);
      if (last) found.push(presentHead(last, keys.find(({ id }) => id === last.keyId)?.publicKey));
    }
    const text = `${JSON.stringify({ heads: found }, null, 2)}\n`;
    if (out === undefined) process.stdout.write(text);
    else writeFileSync(out, text, { flag: 'wx' });
    return 0;
  });
}

function ownKeys({ secret, secretPrevious, dataDir }: Config): Buffer[] {
  const root = secret ?? findSecret(dataDir);
  return root === undefined ? [] : signingKeys(new Secrets(root, secretPrevious)).map(({ publicKey }) => publicKey);
}

/** The scopes of all ledgers, and of exported heads whose ledger no longer exists. */
async function* scopesOf(db: Database, heads: readonly Scope[]): AsyncGenerator<Scope> {
  const missing = new Map(heads.map(({ appId, sandboxId }) => [`${appId}/${sandboxId}`, { appId, sandboxId }]));
  let after: Scope | undefined;
  do {
    const page = await listLedgers(db, after, scopesPageMax);
    for (const scope of page) {
      missing.delete(`${scope.appId}/${scope.sandboxId}`);
      yield scope;
    }
    after = page.length === scopesPageMax ? page.at(-1) : undefined;
  } while (after !== undefined);
  yield* missing.values();
}

function onDatabase(config: Config, work: (db: Database) => Promise<number>): Promise<number> {
  return withDatabase(config, createLogger(config.logLevel), async (db) => {
    await requireMigrated(db);
    return work(db);
  });
}

/** Loads the ledgers of a backup into a temporary PostgreSQL, which is deleted when the command ends. */
async function withBackup(place: string, work: (db: Database) => Promise<number>): Promise<number> {
  const log: Logger = createLogger('error');
  const dataDir = realpathSync(mkdtempSync(join(tmpdir(), 'quarry-verify-')));
  const embedded = await startEmbeddedPostgres({ dataDir, log });
  const db = openDatabase(embedded.address, { poolSize: 2, applicationName: 'quarry-cli' });
  try {
    await withArchive(place, (archive) => loadTables({ db, target: embedded.address }, archive, ledgerTables));
    return await work(db);
  } finally {
    await db.end({ timeout: 5 });
    await embedded.stop();
    for (const directory of [dirname(findCluster(dataDir)), dataDir])
      rmSync(directory, { recursive: true, force: true });
  }
}
