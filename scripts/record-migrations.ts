import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readMigrations } from '../src/db/migrate.ts';

/*
 * Records the checksums of new migrations in migrations/checksums.json.
 *
 *   npm run migrations                            what is recorded stays; one that was edited since is reported
 *   npm run migrations -- --again 0007_name.sql   records it anew: only while no release has it
 */
const file = fileURLToPath(new URL('../migrations/checksums.json', import.meta.url));
const recorded: Record<string, string> = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
const again = process.argv[2] === '--again' ? process.argv.slice(3) : [];
for (const { name, checksum } of await readMigrations()) {
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
writeFileSync(file, `${JSON.stringify(recorded, null, 2)}\n`);
