import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tablePlaces } from '../../src/cells/tables.ts';
import { readProjectFile } from '../support/source.ts';

/** The tables of a schema whose rows name no app. */
function tablesWithoutApp(schema: string): string[] {
  return schema
    .split(/^(?=(?:unlogged )?table )/m)
    .filter((text) => /^(?:unlogged )?table /.test(text) && !/^ {2}app_id /m.test(text))
    .map((text) => /^(?:unlogged )?table (\S+)/.exec(text)?.[1] ?? '');
}

/** Has the column, but says where the app is. */
const directoryOfApps = 'cell_apps';

test('every table without app_id says whether it lives in the directory or in the cells', () => {
  assert.deepEqual(
    Object.keys(tablePlaces).sort(),
    [...tablesWithoutApp(readProjectFile('migrations/schema.txt')), directoryOfApps].sort(),
    'Say in src/cells/tables.ts where the table lives when an installation has several databases.',
  );
});

test('the rule finds a table without app_id, logged or not', () => {
  const schema = 'table a\n  app_id uuid\n\ntable b\n  id uuid\n\nunlogged table c with (fillfactor=50)\n  id uuid\n';
  assert.deepEqual(tablesWithoutApp(schema), ['b', 'c']);
});
