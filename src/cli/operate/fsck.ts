import { openBlobStore } from '../../blob/open.ts';
import { readConfig } from '../../config/config.ts';
import type { Database } from '../../db/database.ts';
import { requireMigrated } from '../../db/migrate.ts';
import { checkFiles, type Finding } from '../../files/fsck.ts';
import { sweepBlobs } from '../../files/sweep.ts';
import { checkIndexes, type IndexFinding } from '../../knowledge/index/check.ts';
import { systemClock } from '../../lib/clock.ts';
import { formatId } from '../../lib/ids.ts';
import { createLogger } from '../../lib/log.ts';
import { correctDrift, findDrift } from '../../usage/store.ts';
import { countOf } from '../count.ts';
import { onEveryDatabase } from './every-database.ts';

/** Compares files with blobs, indexes with texts and counters with rows, in every cell. Returns exit code 1 when a problem was not repaired. */
export async function run(options: Record<string, string | boolean | undefined>): Promise<number> {
  const repair = options.repair === true;
  const config = readConfig();
  const log = createLogger(config.logLevel);
  const blobs = await openBlobStore(config);
  try {
    return await onEveryDatabase(config, log, async (db) => {
      await requireMigrated(db);
      const swept = repair ? await sweepBlobs({ db, blobs, deletedBlobDays: config.deletedBlobDays }) : undefined;
      const report = await checkFiles({ db, blobs, now: systemClock.now() }, repair, (finding) =>
        process.stdout.write(`${describe(finding)}\n`),
      );
      process.stdout.write(
        `${countOf(report.files, 'file')} and ${countOf(report.blobs, 'blob')} checked, ${countOf(report.findings, 'problem')}, ${report.findings - report.unrepaired} repaired\n`,
      );
      if (swept)
        process.stdout.write(
          `${countOf(swept.blobs, 'deleted blob')} and ${countOf(swept.temporary, 'interrupted write')} swept\n`,
        );
      const indexes = await checkIndexes(db, repair, (finding) => process.stdout.write(`${describeIndex(finding)}\n`));
      process.stdout.write(
        `${countOf(indexes.documents, 'document')} of ${countOf(indexes.sources, 'source')} and ${countOf(indexes.chunks, 'chunk')} checked, ${countOf(indexes.findings, 'problem')}, ${indexes.findings - indexes.unrepaired} repaired\n`,
      );
      const drift = await checkCounters(db, repair);
      return report.unrepaired > 0 || indexes.unrepaired > 0 || (drift > 0 && !repair) ? 1 : 0;
    });
  } finally {
    await blobs.close();
  }
}

/** Compares the actual usage of apps with the counters of their quotas. Returns the number of wrong counters. */
async function checkCounters(db: Database, repair: boolean): Promise<number> {
  const drift = await db.begin(async (tx) => {
    const found = await findDrift(tx);
    if (repair) await correctDrift(tx, found);
    return found;
  });
  for (const { appId, measure, booked, counted } of drift)
    process.stdout.write(
      `usage ${formatId('app', appId)} ${measure}: counter is ${booked}, actual value is ${counted}${repair ? '; corrected' : ''}\n`,
    );
  return drift.length;
}

const indexRepairs = {
  reread: 'a server reads the texts of this source again within the hour',
  corrected: 'corrected',
  left: 'not changed: restore the text from a backup, or push the document again',
};

function describeIndex({ kind, source, document, detail, repair }: IndexFinding): string {
  const done = repair === undefined ? '' : `; ${indexRepairs[repair]}`;
  return `${kind} ${source}${document === undefined ? '' : ` ${document}`}: ${detail}${done}`;
}

const repairs = {
  file_deleted: 'deleted the file',
  blob_deleted: 'deleted the blob',
  left: 'not changed: restore the contents from a backup',
};

function describe({ kind, file, blobKey, detail, repair }: Finding): string {
  const what = `${kind} ${file === undefined ? '' : `${file} `}${blobKey}: ${detail}`;
  return repair === undefined ? what : `${what}; ${repairs[repair]}`;
}
