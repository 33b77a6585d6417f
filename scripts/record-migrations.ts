import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readMigrations } from '../src/db/migrate.ts';

/*
 * Records the checksums of new migrations in migrations/checksums.json. What is recorded stays: a migration that was
 * edited since is reported and left as it was recorded.
 */
const file = fileURLToPath(new URL('../migrations/checksums.json', import.meta.url));
const recorded: Record<string, string> = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
for (const { name, checksum } of await readMigrations()) {
  if (!(name in recorded)) process.stdout.write(`recorded ${name}\n`);
  else if (recorded[name] !== checksum) {
    process.stderr.write(`${name} was edited after it was recorded: put it back and make a new migration.\n`);
    process.exitCode = 1;
  }
  recorded[name] ??= checksum;
}
writeFileSync(file, `${JSON.stringify(recorded, null, 2)}\n`);
