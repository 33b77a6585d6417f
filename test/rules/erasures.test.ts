import assert from 'node:assert/strict';
import { test } from 'node:test';
import { catalogue } from '../../src/erasures/catalogue.ts';
import { contentsOfSource } from '../../src/erasures/of-source.ts';
import { propertyOfUser, tracesOfUser } from '../../src/erasures/of-user.ts';
import type { ErasureRow } from '../../src/erasures/store.ts';
import { readProjectFile } from '../support/source.ts';

type Table = { name: string; text: string };

function readTables(schema: string): Table[] {
  return schema.split(/^(?=(?:unlogged )?table )/m).flatMap((text) => {
    const name = /^(?:unlogged )?table (\w+)/.exec(text)?.[1];
    return name === undefined ? [] : [{ name, text: text.split(/^\n|^CREATE /m)[0] ?? '' }];
  });
}

const namesPerson = ({ text }: Table) => /^ {2}(user_id|agent_id|sent_to|email) /m.test(text);
/** Deleted by triggers, or by the sweep of their blobs. */
const byTrigger = ['automation_run_entries', 'credentials', 'pictures'];
/** Deleted by workflow.ts, store.ts and deletions.ts, each in its own way. */
const byWorkflow = ['approval_links', 'automation_runs', 'doomed_blobs', 'files', 'knowledge_indexes', 'uploads'];

const tables = readTables(readProjectFile('migrations/schema.txt'));
const treated = (treatment: string) => Object.keys(catalogue).filter((name) => catalogue[name] === treatment);

test('an erasure knows every table', () => {
  const advice = 'Say in src/erasures/catalogue.ts how an erasure treats it.';
  assert.deepEqual(Object.keys(catalogue).sort(), tables.map(({ name }) => name).sort(), advice);
});

test('no table that names a person is said to hold nothing of one', () => {
  const wrong = tables.filter((table) => namesPerson(table) && catalogue[table.name] === 'others');
  // Owners of the installation, who are no users of an app.
  assert.deepEqual(
    wrong.map(({ name }) => name),
    ['developers'],
  );
  assert.ok(namesPerson({ name: 'a', text: 'table a\n  user_id uuid\n' }));
});

test('what is said to be deleted is deleted, and what is deleted is said to be', () => {
  const erasure = { appId: 'a', subjectId: 'u' } as ErasureRow;
  const steps = [...tracesOfUser(erasure), ...contentsOfSource(erasure, 's'), ...propertyOfUser(erasure)];
  const deleted = new Set([...steps.map(({ table }) => table), ...byWorkflow]);
  assert.deepEqual([...deleted].sort(), treated('deleted').sort());
});

test('what follows another row has a foreign key or a trigger that deletes it', () => {
  const follows = (name: string) =>
    byTrigger.includes(name) || /ON DELETE CASCADE/.test(tables.find((table) => table.name === name)?.text ?? '');
  assert.deepEqual(
    treated('follows').filter((name) => !follows(name)),
    [],
  );
  assert.ok(!follows('audit_entries'));
});
