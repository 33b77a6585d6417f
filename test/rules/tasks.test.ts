import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { readMigrations } from '../../src/db/migrate.ts';
import { taskNames } from '../../src/jobs/task-names.ts';
import { startTestServer } from '../support/server.ts';
import { readSources, type Source } from '../support/source.ts';

const server = await startTestServer();
after(() => server.close());

const names: string[] = Object.values(taskNames);

test('every task name has one task, and every recurring job is one of them', () => {
  const { tasks, recurring } = server.server.work;
  assert.deepEqual(Object.keys(tasks).sort(), names.toSorted());
  assert.deepEqual(
    recurring.map(({ task }) => task).filter((task) => !names.includes(task)),
    [],
  );
});

/** Names of tasks in SQL that no task has. */
function unknownTasks({ name, text }: Source): string[] {
  return [...text.matchAll(/add_job\(\s*'([^']*)'/g)]
    .map(([, task = '']) => task)
    .filter((task) => !names.includes(task))
    .map((task) => `${name}: ${task}`);
}

test('SQL adds only jobs that have a task', async () => {
  const migrations = (await readMigrations()).map(({ name, sql }) => ({ name, text: sql }));
  assert.deepEqual([...readSources('src'), ...migrations].flatMap(unknownTasks), [], 'See src/jobs/task-names.ts.');

  assert.deepEqual(unknownTasks({ name: 'a', text: "select add_job('advance', '{}')" }), ['a: advance']);
});
