import assert from 'node:assert/strict';
import { basename, relative } from 'node:path';
import { test } from 'node:test';
import { projectRoot, readText, sourceFiles } from '../support/source.ts';

const linesMax = 500;
/** Longer than they should be; none may join them. */
const longToday = ['src/content/parse/pdf/pdfium.ts'];
const everywhere = ['src', 'test', 'bench'].flatMap(sourceFiles);
const nameOf = (file: string) => relative(projectRoot, file);

test('no file is longer than 500 lines', () => {
  const long = everywhere
    .map((file) => ({ file: nameOf(file), lines: readText(file).split('\n').length - 1 }))
    .filter(({ file, lines }) => lines > linesMax && !longToday.includes(file));
  assert.deepEqual(long, [], 'Split each along what its parts are about, not in the middle.');
});

test('file names are kebab-case', () => {
  const wrong = everywhere.filter((file) => !/^[a-z0-9]+(-[a-z0-9]+)*(\.test|\.bench)?\.ts$/.test(basename(file)));
  assert.deepEqual(wrong.map(nameOf), []);
});

test('only config.ts reads the environment', () => {
  const wrong = sourceFiles('src').filter(
    (file) => nameOf(file) !== 'src/config.ts' && /process\.env\b|from 'node:process'/.test(readText(file)),
  );
  assert.deepEqual(
    wrong.map(nameOf),
    [],
    'Make it a setting in src/config.ts, with a line in docs/configuration.md, and hand it in.',
  );
});

test('only clock.ts, and code that measures time passing, calls the clock of the machine for the time of day', () => {
  const wrong = sourceFiles('src').filter(
    (file) => /\bnew Date\(\)/.test(readText(file)) && nameOf(file) !== 'src/clock.ts',
  );
  assert.deepEqual(wrong.map(nameOf), [], 'Take a Clock, so that tests can move the time.');
});

test('no type is escaped', () => {
  const wrong = everywhere.filter(
    (file) =>
      nameOf(file) !== 'test/rules/files.test.ts' &&
      /@ts-(ignore|expect-error|nocheck)|\bas any\b/.test(readText(file)),
  );
  assert.deepEqual(wrong.map(nameOf), [], 'Say the type, or read the value through a check that proves it.');
});
