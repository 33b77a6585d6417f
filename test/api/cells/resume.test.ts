import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { abortMove, continueMove } from '../../../src/cells/move/move.ts';
import { runMover } from '../../support/cells/run-mover.ts';
import { addDeveloper, createApp, directoryOf } from '../../support/cells/tenants.ts';
import { startTwoCells, withoutWorkers } from '../../support/cells.ts';
import { until } from '../../support/until.ts';

/**
 * Commands that move apps and die, beside a process without workers. Then one with workers starts, which would otherwise
 * take a move before its command does.
 */
const server = await startTwoCells(withoutWorkers);
let worker: typeof server | undefined;
after(async () => {
  await worker?.close();
  await server.close();
});
const { api, first, second } = server;
const directory = directoryOf(server);
const token = await addDeveloper(server);
const cells = [
  { name: 'eu1', target: first.target },
  { name: 'eu2', target: second.target },
];

const other = (cell: string) => (cell === 'eu1' ? 'eu2' : 'eu1');
const put = (key: string, user: string) => api('PUT', '/api/v1/kv/state', { key, body: { value: 'written', user } });

async function createMovedApp() {
  const app = await createApp(server, token, 'Moved');
  const user = await api<{ id: string }>('POST', '/api/v1/users', {
    key: app.secret,
    body: { email: 'a@example.com' },
  });
  await directory.addMove(app.uuid, other(app.cell));
  return { ...app, user: user.body.id };
}

async function ended(appId: string): Promise<{ step: string; cell: string }> {
  let found: { step: string; cell: string } | undefined;
  await until(async () => {
    [found] = await first.db<{ step: string; cell: string }[]>`
      select step, cell from cell_moves join cell_apps using (app_id) where app_id = ${appId} and ended_at is not null`;
    return found !== undefined;
  });
  return found ?? assert.fail();
}

test('workers continue moves whose commands were killed, and open an app whose move was aborted elsewhere', async () => {
  const killed = [];
  for (const killAt of ['copied users', 'frozen', 'switched']) {
    const app = await createMovedApp();
    assert.equal(await runMover({ directory: first.target, cells, appId: app.uuid, killAt }), undefined, killAt);
    killed.push({ ...app, killAt });
  }
  const app = await createMovedApp();
  let aborted: unknown;
  const moved = continueMove({
    ...{ directory, appId: app.uuid, sourceKeptMs: 0 },
    onPoint: async (point) => {
      if (point !== 'frozen') return;
      aborted = await abortMove({ directory, appId: app.uuid }).catch((error: unknown) => error);
    },
  });
  await assert.rejects(moved, /Another process has changed the move/);
  assert.match(String(aborted), /Another process is working on the move/);

  worker = await startTwoCells({}, server);
  for (const { uuid, cell, secret, user, killAt } of killed) {
    assert.deepEqual(await ended(uuid), { step: 'done', cell: other(cell) }, killAt);
    await until(async () => (await put(secret, user)).status === 200);
  }
  assert.deepEqual(await ended(app.uuid), { step: 'aborted', cell: app.cell });
  await until(async () => (await put(app.secret, app.user)).status === 200);
});
