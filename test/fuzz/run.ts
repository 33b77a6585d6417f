/**
 *   npm run fuzz -- --api
 * sends every parameter and member of the API with every awkward value, on a database of its own, and fails where a
 * response is a 5xx, is missing or does not match its schema.
 *
 * Without it: sends damaged files of every format to the parser pool and reports the outcomes.
 *   npm run fuzz -- [--files 500] [--seed 1] [--deadline-ms 30000] [--memory-mb 512] [FILE…]
 * Fails when a file takes longer than the deadline, when the pool's own process grows, or when an outcome is neither
 * a document nor a ParseError.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';
import { createLogger } from '../../src/log.ts';
import { sampleDocuments } from '../support/documents.ts';
import { samplePictures } from '../support/pictures.ts';
import { sampleScans } from '../support/scans.ts';
import { fuzz } from './fuzz.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    api: { type: 'boolean', default: false },
    files: { type: 'string', default: '500' },
    seed: { type: 'string', default: '1' },
    'deadline-ms': { type: 'string', default: '30000' },
    'memory-mb': { type: 'string', default: '512' },
  },
});
if (values.api) sweepWholeApi();
else await fuzzParsers();

function sweepWholeApi(): void {
  const { status } = spawnSync(process.execPath, ['test/run.ts', 'test/fuzz/api.test.ts', '--test-timeout=3600000'], {
    stdio: 'inherit',
    env: { ...process.env, FUZZ_API_ONE_OF: '1' },
  });
  process.exitCode = status ?? 1;
}

async function fuzzParsers(): Promise<void> {
  const pictures = await samplePictures();
  const own = positionals.map((path) => ({ filename: basename(path), bytes: readFileSync(path) }));
  const report = await fuzz({
    documents: [...sampleDocuments(), ...(await sampleScans()), ...own, ...pictures],
    pictures: pictures.length,
    files: Number(values.files),
    seed: Number(values.seed),
    deadlineMs: Number(values['deadline-ms']),
    memoryMb: Number(values['memory-mb']),
    log: createLogger('silent'),
  });
  console.log(JSON.stringify(report, undefined, 2));
  if (report.problems.length > 0) process.exitCode = 1;
}
