import { type PruneOptions, pruneRuns } from '../../automations/retention/prune.ts';
import { findSecret } from '../../boot/services.ts';
import { readConfig } from '../../config/config.ts';
import { requireMigrated } from '../../db/migrate.ts';
import { deleteEndedExtractions } from '../../extractions/store.ts';
import { createLedger } from '../../ledger/seal.ts';
import { systemClock } from '../../lib/clock.ts';
import { formatId, parseId } from '../../lib/ids.ts';
import { createLogger } from '../../lib/log.ts';
import { Secrets } from '../../tenancy/secrets.ts';
import { countOf } from '../count.ts';
import { UsageError } from '../errors.ts';
import { withDatabase } from './with-database.ts';

/** Deletes the runs that are kept no longer, as the servers do every hour, or shows which they are. */
export async function run(options: { dryRun?: boolean; app?: string }): Promise<number> {
  const appId = options.app === undefined ? undefined : parseId('app', options.app);
  if (options.app !== undefined && appId === undefined)
    throw new UsageError(`"${options.app}" is not the id of an app.`);
  const dryRun = options.dryRun === true;
  const config = readConfig();
  const root = config.secret ?? findSecret(config.dataDir);
  if (root === undefined) throw new UsageError('The root secret is needed to sign what is removed: set QUARRY_SECRET.');
  return withDatabase(config, createLogger(config.logLevel), async (db) => {
    await requireMigrated(db);
    const ledger = createLedger({ db, clock: systemClock, secrets: new Secrets(root, config.secretPrevious) });
    const onAutomation: PruneOptions['onAutomation'] = (automation, pruned) =>
      process.stdout.write(
        `${formatId('app', automation.appId)} ${formatId('automation', automation.id)} ${automation.name}: ${describe(pruned)}\n`,
      );
    const deps = { db, clock: systemClock, ledger, deleteExtractions: deleteEndedExtractions };
    const total = await pruneRuns(deps, { dryRun, appId, onAutomation });
    process.stdout.write(`${describe(total)} ${dryRun ? 'would be deleted' : 'deleted'}\n`);
    return 0;
  });
}

type Counts = Record<'runs' | 'entries' | 'bytes' | 'extractions' | 'files', number>;

function describe({ runs, entries, bytes, extractions, files }: Counts) {
  return `${countOf(runs, 'run')}, ${countOf(entries, 'entry', 'entries')} of ${countOf(bytes, 'byte')}, ${countOf(extractions, 'extraction')}, ${countOf(files, 'file')}`;
}
