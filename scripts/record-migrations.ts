import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openDatabase } from '../src/db/database.ts';
import { startEmbeddedPostgres } from '../src/db/embedded.ts';
import { migrate, readMigrations } from '../src/db/migrate.ts';
import { createLogger } from '../src/lib/log.ts';
import { describeSchema } from './describe-schema.ts';

/*
 * Records the checksums of new migrations in migrations/checksums.json, and the resulting schema in
 * migrations/schema.txt.
 *
 * npm run migrations                            keeps recorded checksums, and reports files edited since
 * npm run migrations -- --again 0007_name.sql   records the file again, or removes it if deleted: only for files
 * that no release contains
 */
const directory = fileURLToPath(new URL('../migrations/', import.meta.url));
const checksums = join(directory, 'checksums.json');
const recorded: Record<string, string> = existsSync(checksums) ? JSON.parse(readFileSync(checksums, 'utf8')) : {};
const again = process.argv[2] === '--again' ? process.argv.slice(3) : [];
// No file of a release can be recorded again; those added since then can, until the next one.
const releases = join(directory, '../test/fixtures/releases');
const released = new Set(
  readdirSync(releases).flatMap((version) => {
    const { manifest } = JSON.parse(readFileSync(join(releases, version, 'installation.json'), 'utf8'));
    return manifest.migrations.map(({ name }: { name: string }) => name) as string[];
  }),
);
for (const name of again.filter((each) => released.has(each))) {
  process.stderr.write(`A release contains ${name}. Make a new migration with the next number.\n`);
  process.exit(1);
}
const migrations = await readMigrations();
const names = new Set(migrations.map(({ name }) => name));
for (const name of again) if (!names.has(name)) delete recorded[name];
for (const { name, checksum } of migrations) {
  if (recorded[name] === checksum) continue;
  if (name in recorded && !again.includes(name)) {
    process.stderr.write(
      `${name} was edited after it was recorded. Put it back and make a new migration; or, while no release has it: npm run migrations -- --again ${name}\n`,
    );
    process.exitCode = 1;
    continue;
  }
  recorded[name] = checksum;
  process.stdout.write(`recorded ${name}\n`);
}
if (process.exitCode === undefined) {
  writeFileSync(checksums, `${JSON.stringify(recorded, null, 2)}\n`);
  writeFileSync(join(directory, 'schema.txt'), await readSchema());
}

async function readSchema(): Promise<string> {
  const dataDir = mkdtempSync(join(realpathSync(tmpdir()), 'quarry-schema-'));
  const server = await startEmbeddedPostgres({ dataDir, log: createLogger('error'), settings: { fsync: 'off' } });
  try {
    const db = openDatabase(server.address, { poolSize: 2, applicationName: 'quarry-schema' });
    await migrate(db, migrations);
    const text = await describeSchema(db);
    await db.end();
    return text;
  } finally {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}
