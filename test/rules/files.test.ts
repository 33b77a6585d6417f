import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namesOf, readSources, type Source } from '../support/source.ts';

/*
 * What Biome has no rule for. File names, file lengths, `any`, cycles and the environment are in biome.json, and
 * lint.test.ts shows that they are on.
 */
const everywhere = readSources('src', 'test', 'bench', 'scripts', 'console/src');

/** A new id begins with the time of the machine (UUIDv7); ids.ts keeps it ascending. */
const readsMachineClock = ({ name, text }: Source) =>
  /\bnew Date\(\)|\bDate\.now\(/.test(text) && !['src/lib/clock.ts', 'src/lib/ids.ts'].includes(name);

test('the program reads the time of day from its Clock only', () => {
  const wrong = everywhere.filter(({ name }) => name.startsWith('src/')).filter(readsMachineClock);
  assert.deepEqual(
    namesOf(wrong),
    [],
    'Take a Clock, so that tests can move the time, or performance.now() for durations.',
  );

  assert.ok(readsMachineClock({ name: 'src/kv/service.ts', text: 'const now = new Date();' }));
  assert.ok(readsMachineClock({ name: 'src/kv/service.ts', text: 'const until = Date.now() + 5_000;' }));
  assert.ok(!readsMachineClock({ name: 'src/lib/clock.ts', text: 'const now = new Date();' }));
});

const createsParents = ({ name, text }: Source) =>
  /\bmkdir(?:Sync)?\([^;]*\brecursive\b/.test(text) && name !== 'src/lib/directories.ts';

test('the program creates directories by createDirectories only, which always returns', () => {
  const wrong = everywhere.filter(({ name }) => name.startsWith('src/')).filter(createsParents);
  assert.deepEqual(namesOf(wrong), [], 'Use createDirectories of src/lib/directories.ts.');

  assert.ok(createsParents({ name: 'src/a.ts', text: 'await mkdir(dirname(path), { recursive: true });' }));
  assert.ok(
    !createsParents({ name: 'src/a.ts', text: 'mkdirSync(path, { mode: 0o700 });\nrm(path, { recursive: true });' }),
  );
});

const silencesTypes = ({ name, text }: Source) =>
  /@ts-(?:ignore|expect-error|nocheck)\b/.test(text) || (name.startsWith('console/') && /\bas never\b/.test(text));

test('nothing silences the type checker', () => {
  const wrong = everywhere.filter(({ name }) => name !== 'test/rules/files.test.ts').filter(silencesTypes);
  assert.deepEqual(namesOf(wrong), [], 'State the type, or read the value through a check that proves it.');

  assert.ok(silencesTypes({ name: 'src/a.ts', text: '// @ts-expect-error later' }));
  assert.ok(silencesTypes({ name: 'console/src/a.ts', text: 'call(body as never)' }));
});

const namesOwnExtension = ({ text }: Source) => /new URL\(\s*['"`]\.{1,2}\/[^'"`]*\.ts['"`]/.test(text);

test('a file that is started by its path is named without `.ts`, which the npm package does not have', () => {
  const wrong = everywhere.filter(({ name }) => name.startsWith('src/')).filter(namesOwnExtension);
  assert.deepEqual(namesOf(wrong), [], 'Use programFile of src/lib/program-file.ts.');

  assert.ok(namesOwnExtension({ name: 'src/a.ts', text: "new URL('./worker.ts', import.meta.url)" }));
  assert.ok(!namesOwnExtension({ name: 'src/a.ts', text: "programFile('./worker', import.meta.url)" }));
});

const generatesUnseeded = ({ name, text }: Source) =>
  /from 'fast-check'/.test(text) && name !== 'test/support/fast-check.ts' && name !== 'test/rules/files.test.ts';

test('generated cases come from the seed of the run', () => {
  const wrong = everywhere.filter(generatesUnseeded);
  assert.deepEqual(namesOf(wrong), [], 'Import test/support/fast-check.ts, so that a failure can be repeated.');

  assert.ok(generatesUnseeded({ name: 'test/unit/a.test.ts', text: "import fc from 'fast-check';" }));
  assert.ok(!generatesUnseeded({ name: 'test/unit/a.test.ts', text: "import fc from '../support/fast-check.ts';" }));
});

/** Node runs the first tests while the file still waits, so what stands below is not defined yet. */
const waitsBelowTests = ({ text }: Source) =>
  /^test\([\s\S]*^(?:(?:const|let) [^=]*= )?await /m.test(text.replace(/`[^`]*`/g, ''));

test('what a test file waits for stands above its tests', () => {
  const wrong = readSources('test').filter(waitsBelowTests);
  assert.deepEqual(namesOf(wrong), [], 'Move the statement above the first test.');

  assert.ok(waitsBelowTests({ name: 'a.test.ts', text: "test('a', () => {});\nconst own = await read();\n" }));
  assert.ok(!waitsBelowTests({ name: 'a.test.ts', text: "const own = await read();\ntest('a', () => {});\n" }));
});

/** Template literals that ask for sessions or locks of the whole server, not of one database or session. */
const asksWholeServer = ({ text }: Source) =>
  (text.match(/`[^`]*\bpg_(?:stat_activity|locks)\b[^`]*`/g) ?? []).some(
    (statement) => !/current_database\(\)|\bpid = |any\(pg_blocking_pids/.test(statement),
  );

test('tests count the sessions and locks of their own database', () => {
  const wrong = readSources('test').filter(({ name }) => name !== 'test/rules/files.test.ts');
  assert.deepEqual(
    namesOf(wrong.filter(asksWholeServer)),
    [],
    'Other tests run on the same server, and their tables have the same numbers: add `datname = current_database()`.',
  );

  const text = (condition: string) => `db\`select 1 from pg_locks where not granted${condition}\``;
  assert.ok(asksWholeServer({ name: 'test/api/a.test.ts', text: text('') }));
  assert.ok(!asksWholeServer({ name: 'test/api/a.test.ts', text: text(' and pid = 1') }));
});

/** They run what `npm run prove` judges, or measure for `speed.ts`. */
const mayMeasure = /^test\/(?:prove\/|support\/(?:speed|loop-meter)\.ts|fuzz\/complexity(?:\.test)?\.ts)/;
const judgesTime = ({ name, text }: Source) =>
  !mayMeasure.test(name) &&
  name !== 'test/rules/files.test.ts' &&
  (/\bperformance\.now\(|\bhrtime\b|[cC]puUsage\(|\blongestTurnMs\b|Date\.now\(\) - started/.test(text) ||
    /assert[^;]*passedMs\(\) <[^;]*;/.test(text));

test('no test of `npm test` judges how long something takes', () => {
  const wrong = readSources('test').filter(judgesTime);
  assert.deepEqual(
    namesOf(wrong),
    [],
    'Count turns, rows or requests, or use speedTest or startWatch of test/support/speed.ts.',
  );

  const judging = (text: string) => judgesTime({ name: 'test/unit/a.test.ts', text });
  assert.ok(judging('const started = performance.now();'));
  assert.ok(judging('assert.ok(watch.passedMs() < 500);'));
  assert.ok(!judging('assert.ok(watch.passedMs() >= 290);\nwatch.within(500, "The end");'));
});

const endsEarly = ({ text }: Source) =>
  [...text.matchAll(/^(?:test\(|speedTest\().*\{\s*timeout: ([\d_]+)/gm)].some(
    ([, ms = '']) => Number(ms.replaceAll('_', '')) < 300_000,
  );

test('no test ends for a timeout of its own that a slow machine would reach', () => {
  const wrong = readSources('test').filter(endsEarly);
  assert.deepEqual(namesOf(wrong), [], 'Leave it to the timeout of test/run.ts.');

  assert.ok(endsEarly({ name: 'test/unit/a.test.ts', text: "test('a', { timeout: 60_000 }, async () => {" }));
  assert.ok(!endsEarly({ name: 'test/unit/a.test.ts', text: "test('a', { timeout: 600_000 }, async () => {" }));
});
