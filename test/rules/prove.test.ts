import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { listParts } from '../prove/parts.ts';
import { projectRoot, readSources } from '../support/source.ts';

const named = (['quick', 'long'] as const).flatMap((length) =>
  listParts(length, 1).flatMap(({ command }) => command.filter((argument) => argument.startsWith('test/'))),
);

test('each file that npm run prove names exists', () => {
  assert.ok(named.length > 100);
  assert.deepEqual(
    named.filter((file) => !existsSync(join(projectRoot, file))),
    [],
  );
});

test('npm run prove repeats every crash test: npm test only has a sample of their kills', () => {
  const crashes = readSources('test/crash').flatMap(({ name }) => (name.endsWith('.test.ts') ? [name] : []));
  assert.ok(crashes.length > 30);
  assert.deepEqual(
    crashes.filter((name) => !named.includes(name)),
    [],
    'Add these to a part in test/prove/parts.ts.',
  );
});
