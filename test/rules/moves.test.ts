import assert from 'node:assert/strict';
import { test } from 'node:test';
import { catalogue, sequences } from '../../src/cells/move/catalogue.ts';
import { readProjectFile } from '../support/source.ts';

/** Tables that the migrations do not create. */
const ownTables = ['schema_migrations', 'server_facts'];

function readTables(schema: string): string[] {
  return [...schema.matchAll(/^(?:unlogged )?table (\w+)/gm)].map(([, name = '']) => name);
}

/** Sequences, and those of identity columns. */
function readSequences(schema: string): string[] {
  const identities = schema.split(/^(?=(?:unlogged )?table )/m).flatMap((text) => {
    const table = /^(?:unlogged )?table (\w+)/.exec(text)?.[1];
    return [...text.matchAll(/^ {2}(\w+) .* as identity$/gm)].map(([, column]) => `${table}_${column}_seq`);
  });
  return [...[...schema.matchAll(/^sequence (\w+)/gm)].map(([, name = '']) => name), ...identities];
}

test('a move of an app knows every table and every sequence', () => {
  const schema = readProjectFile('migrations/schema.txt');
  const advice = 'Say in src/cells/move/catalogue.ts what a move of an app does with it.';
  assert.deepEqual(Object.keys(catalogue).sort(), [...readTables(schema), ...ownTables].sort(), advice);
  assert.deepEqual(Object.keys(sequences).sort(), readSequences(schema).sort(), advice);
});

test('the rule finds tables, and sequences of identity columns', () => {
  const schema =
    'table a with (fillfactor=50)\n  app_id uuid not null\n  n bigint not null generated always as identity\n\nunlogged table b\n\nsequence c\n';
  assert.deepEqual(readTables(schema), ['a', 'b']);
  assert.deepEqual(readSequences(schema), ['c', 'a_n_seq']);
});
