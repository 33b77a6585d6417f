import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tables } from '../../src/db/tables.ts';
import { exportSteps } from '../../src/erasures/export-steps.ts';
import { exported, leftOut, omittedEverywhere } from '../../src/erasures/exported.ts';
import { contentsOfSource } from '../../src/erasures/of-source.ts';
import { propertyOfUser, tracesOfUser } from '../../src/erasures/of-user.ts';
import type { ErasureRow } from '../../src/erasures/store.ts';
import { readTables, type SchemaTable } from '../support/schema-tables.ts';
import { readProjectFile } from '../support/source.ts';

const namesPerson = ({ text }: SchemaTable) => /^ {2}(user_id|agent_id|sent_to|email) /m.test(text);
/** Deleted by triggers, or by the sweep of their blobs. */
const byTrigger = ['automation_run_entries', 'credentials', 'pictures'];
/** Deleted by workflow.ts, store.ts and deletions.ts, each in its own way. */
const byWorkflow = ['approval_links', 'automation_runs', 'doomed_blobs', 'files', 'knowledge_indexes', 'uploads'];

const schema = readTables(readProjectFile('migrations/schema.txt'));
const treated = (treatment: string) => Object.keys(tables).filter((name) => tables[name]?.erasure === treatment);

test('no table that names a person is said to hold nothing of one', () => {
  const wrong = schema.filter((table) => namesPerson(table) && tables[table.name]?.erasure === 'others');
  // Owners of the installation, who are not users of an app.
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
    byTrigger.includes(name) || /ON DELETE CASCADE/.test(schema.find((table) => table.name === name)?.text ?? '');
  assert.deepEqual(
    treated('follows').filter((name) => !follows(name)),
    [],
  );
  assert.ok(!follows('audit_entries'));
});

/** Read with the rows above them, by export.ts. */
const readBelow = ['automation_run_entries', 'automation_run_output', 'knowledge_texts', 'knowledge_version_texts'];
const subject = { appId: 'a', subjectId: 'u' };

test('the archive of a user has every table that an erasure touches, or says why not', () => {
  const touched = Object.keys(tables).filter((name) => tables[name]?.erasure !== 'others');
  const named = [...Object.keys(exported), ...Object.values(leftOut).flat()];
  assert.deepEqual(named.sort(), touched.sort(), 'Add the table to src/erasures/exported.ts.');
});

test('every table of the archive is read, and so is all that an erasure deletes of the user', () => {
  const read = [...exportSteps(subject, null).map(({ table }) => table), ...readBelow];
  assert.deepEqual(read.sort(), Object.keys(exported).sort());
  const deleted = [...tracesOfUser(subject), ...propertyOfUser(subject)].map(({ table }) => table);
  const reasons = Object.values(leftOut).flat();
  assert.deepEqual(
    deleted.filter((table) => !read.includes(table) && !reasons.includes(table)),
    [],
  );
});

test('no file of the archive has a secret, and every column that it leaves out exists', () => {
  const columnsOf = (name: string) =>
    [...(schema.find((table) => table.name === name)?.text ?? '').matchAll(/^ {2}([a-z]\w*) ([a-z]+)/gm)].map(
      ([, column = '', type]) => ({ column, type }),
    );
  const wrong = Object.entries(exported).flatMap(([name, { omit = [], hex = [] }]) => {
    const columns = columnsOf(name);
    const secret = columns.filter(
      ({ column, type }) =>
        type !== 'bytea' &&
        /password|secret|digest|hash|challenge|blob_key|epoch/.test(column) &&
        !omit.includes(column),
    );
    const missing = [...omit, ...hex].filter((each) => !columns.some(({ column }) => column === each));
    const twice = omit.filter((each) => omittedEverywhere.includes(each));
    return [...secret.map(({ column }) => column), ...missing, ...twice].map((column) => `${name}.${column}`);
  });
  assert.deepEqual(wrong, []);
  assert.ok(columnsOf('users').some(({ column, type }) => column === 'password_hash' && type === 'text'));
});
