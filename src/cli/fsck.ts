import { openBlobStore } from '../blob/open.ts';
import { systemClock } from '../clock.ts';
import { readConfig } from '../config.ts';
import { checkFiles, type Finding } from '../files/fsck.ts';
import { sweepBlobs } from '../files/sweep.ts';
import { createLogger } from '../log.ts';
import { withDatabase } from './with-database.ts';

/** Compares files and blobs. Exit code 1 when something is wrong that was not repaired. */
export async function run(options: Record<string, string | boolean | undefined>): Promise<number> {
  const repair = options.repair === true;
  const config = readConfig();
  const log = createLogger(config.logLevel);
  const blobs = await openBlobStore(config);
  try {
    return await withDatabase(config, log, async (db) => {
      const swept = repair ? await sweepBlobs({ db, blobs }) : undefined;
      const report = await checkFiles({ db, blobs, now: systemClock.now() }, repair, (finding) =>
        process.stdout.write(`${describe(finding)}\n`),
      );
      process.stdout.write(
        `${report.files} files and ${report.blobs} blobs checked, ${report.findings} problems, ${report.findings - report.unrepaired} repaired\n`,
      );
      if (swept) process.stdout.write(`${swept.blobs} removed blobs and ${swept.temporary} interrupted writes swept\n`);
      return report.unrepaired > 0 ? 1 : 0;
    });
  } finally {
    await blobs.close();
  }
}

const repairs = {
  file_deleted: 'deleted the file',
  blob_deleted: 'deleted the blob',
  left: 'left as it is: restore the contents from a backup',
};

function describe({ kind, file, blobKey, detail, repair }: Finding): string {
  const what = `${kind} ${file === undefined ? '' : `${file} `}${blobKey}: ${detail}`;
  return repair === undefined ? what : `${what}; ${repairs[repair]}`;
}
