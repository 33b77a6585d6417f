import './test-hook.ts';
import './own-modules.ts';
import './cached-parsers.ts';
import './end-watchdog.ts';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { shareAmongFiles } from './shared.ts';
import { projectRoot } from './source.ts';
import { whileFollowed } from './test-hook.ts';

/*
 * Runs the test files named in its own URL (`batch.ts?file=…&file=…`) in one process, one after another. Each file is
 * a test named after it that contains the file's tests and hooks, so its servers are closed before the next file
 * begins.
 */
/** The limit for one file. Each test in it also has the timeout of the run. */
const fileTimeoutMs = 1_800_000;

shareAmongFiles();
for (const file of new URL(import.meta.url).searchParams.getAll('file'))
  test(file, { timeout: fileTimeoutMs }, () =>
    whileFollowed(() => import(pathToFileURL(join(projectRoot, file)).href)),
  );
