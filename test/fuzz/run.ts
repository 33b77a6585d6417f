/**
 *   npm run fuzz -- --api sends every parameter and member of the API with every awkward value, on a separate
 *   database, and fails if a response is a 5xx, is missing or does not match its schema.
 *
 * Without it: sends damaged files of every format to the parser pool and reports the outcomes.
 *   npm run fuzz -- [--files 500 | --each 20] [--only PATTERN] [--seed 1] [--deadline-ms 30000] [--memory-mb 512]
 *   [FILE…] `--each` is the number of damaged copies of every sample; without FILE, there is at least one of every
 *   format. `--only` takes the samples whose names match a regular expression: "pdf$", for example. `--list` prints
 *   the names. Fails when a file takes longer than the deadline, when the pool's own process grows, or when an
 *   outcome is neither a document nor a ParseError.
 *
 *   npm run fuzz -- --render [--pages 200] [--seed 1] draws hostile pages in a real Chromium. Fails when one does not
 *   end in time, leaves a context or process behind, or reaches a service of this machine.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';
import { createLogger } from '../../src/lib/log.ts';
import { type SampleDocument, sampleDocuments } from '../support/documents.ts';
import { samplePictures } from '../support/pictures.ts';
import { sampleScans } from '../support/scans.ts';
import { fuzz } from './fuzz.ts';
import { fuzzRenderer } from './render.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    api: { type: 'boolean', default: false },
    render: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    pages: { type: 'string', default: '200' },
    files: { type: 'string', default: '500' },
    each: { type: 'string' },
    seed: { type: 'string', default: '1' },
    'deadline-ms': { type: 'string', default: '30000' },
    'memory-mb': { type: 'string', default: '512' },
  },
});
if (values.api) sweepWholeApi();
else if (values.render) await drawHostilePages();
else await fuzzParsers();

function sweepWholeApi(): void {
  const { status } = spawnSync(process.execPath, ['test/run.ts', 'test/fuzz/api.test.ts', '--test-timeout=3600000'], {
    stdio: 'inherit',
    env: { ...process.env, FUZZ_API_ONE_OF: '1' },
  });
  process.exitCode = status ?? 1;
}

async function drawHostilePages(): Promise<void> {
  const seed = Number(values.seed);
  const report = await fuzzRenderer({ pages: Number(values.pages), seed, timeoutMs: 3_000 });
  console.log(JSON.stringify({ seed, ...report }, undefined, 2));
  console.log(`ℹ ${report.pages} hostile pages, slowest ${report.slowestMs} ms`);
  if (report.problems.length > 0) process.exitCode = 1;
}

async function fuzzParsers(): Promise<void> {
  const pattern = new RegExp(values.only);
  const isChosen = ({ filename }: SampleDocument) => pattern.test(filename);
  const pictures = (await samplePictures()).filter(isChosen);
  const own = positionals.map((path) => ({ filename: basename(path), bytes: readFileSync(path) }));
  const read = [...sampleDocuments(), ...(await sampleScans())].filter(isChosen);
  const documents = [...read, ...own, ...pictures];
  if (values.list) return console.log(documents.map(({ filename }) => filename).join('\n'));
  if (documents.length === 0) throw new Error(`No sample is called ${values.only}.`);
  const report = await fuzz({
    documents,
    pictures: pictures.length,
    files: values.each === undefined ? Number(values.files) : Number(values.each) * documents.length,
    seed: Number(values.seed),
    deadlineMs: Number(values['deadline-ms']),
    memoryMb: Number(values['memory-mb']),
    log: createLogger('silent'),
  });
  console.log(JSON.stringify({ samples: documents.length, seed: Number(values.seed), ...report }, undefined, 2));
  console.log(`ℹ ${report.files} files, ${documents.length} samples, slowest ${report.slowestMs} ms`);
  if (report.problems.length > 0) process.exitCode = 1;
}
