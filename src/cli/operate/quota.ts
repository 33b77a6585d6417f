import { readConfig } from '../../config/config.ts';
import { production } from '../../db/database.ts';
import { requireMigrated } from '../../db/migrate.ts';
import { formatId, parseId } from '../../lib/ids.ts';
import { createLogger } from '../../lib/log.ts';
import { type Measure, measures, noLimit } from '../../tenancy/quotas.ts';
import { readUsage, setOperatorLimit } from '../../usage/store.ts';
import { withDatabase } from './with-database.ts';

type QuotaOptions = Record<string, string | boolean | undefined>;

const optionOf = {
  file_bytes: 'fileBytes',
  documents: 'documents',
  pages: 'pages',
  tokens: 'tokens',
  sandboxes: 'sandboxes',
} as const;

const candidatesMax = 10;

/** Sets the operator's limits of an app, and shows its usage. Exit code 2 for invalid values. */
export async function run(app: string, options: QuotaOptions): Promise<number> {
  const changes: [Measure, number | null][] = [];
  for (const measure of measures) {
    const given = options[optionOf[measure]];
    if (typeof given !== 'string') continue;
    const bound = readBound(given);
    if (bound === undefined)
      return printUsageError(`"${given}" is not a limit: pass a whole number, "none" or "default"`);
    changes.push([measure, bound]);
  }
  const config = readConfig();
  return withDatabase(config, createLogger(config.logLevel), async (db) => {
    await requireMigrated(db);
    const found = await db<{ id: string; name: string }[]>`
      select id, name from apps where id = ${parseId('app', app) ?? null} or lower(name) = lower(${app})
      order by id limit ${candidatesMax}`;
    const [{ id: appId } = { id: '' }] = found;
    if (found.length > 1) {
      const candidates = found.map(({ id, name }) => `\n  ${formatId('app', id)}  ${name}`).join('');
      return printUsageError(`Several apps are called "${app}". Pass the id of one:${candidates}`);
    }
    if (appId === '') {
      process.stderr.write(`No app has the id or name "${app}".\n`);
      return 1;
    }
    await db.begin(async (tx) => {
      for (const [measure, bound] of changes) await setOperatorLimit(tx, appId, measure, bound);
    });
    const usage = await readUsage(db, { appId, sandboxId: production });
    if (options.json === true) {
      const shown = usage.map(({ measure, used, bound }) => [measure, { used, limit: presentLimit(bound) }]);
      process.stdout.write(`${JSON.stringify(Object.fromEntries(shown))}\n`);
    } else
      for (const { measure, used, bound } of usage)
        process.stdout.write(`${measure.padEnd(10)} ${used} of ${presentLimit(bound) ?? 'no limit'}\n`);
    return 0;
  });
}

/** A number, or null for the default; undefined for anything else. */
function readBound(text: string): number | null | undefined {
  if (text === 'default') return null;
  if (text === 'none') return noLimit;
  const bound = Number(text);
  return /^\d+$/.test(text) && bound <= noLimit ? bound : undefined;
}

function presentLimit(bound: number | null): number | null {
  return bound === noLimit ? null : bound;
}

function printUsageError(message: string): number {
  process.stderr.write(`${message}\n`);
  return 2;
}
