import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { abortMove, continueMove } from '../../../src/cells/move/move.ts';
import { runMover } from '../../support/cells/run-mover.ts';
import { addDeveloper, createApp, directoryOf } from '../../support/cells/tenants.ts';
import { startTwoCells } from '../../support/cells.ts';
import { until } from '../../support/until.ts';

/** A process with workers, beside commands that move apps and die. */
const server = await startTwoCells();
after(() => server.close());
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

for (const killAt of ['copied users', 'frozen', 'switched'])
  test(`a worker continues a move whose command was killed at "${killAt}"`, async () => {
    const app = await createMovedApp();
    assert.equal(await runMover({ directory: first.target, cells, appId: app.uuid, killAt }), undefined);
    await until(async () => (await put(app.secret, app.user)).status === 200);
    const { step, cell } = await ended(app.uuid);
    assert.deepEqual([step, cell], ['done', other(app.cell)]);
    assert.equal((await put(app.secret, app.user)).status, 200);
  });

test('a move is aborted while another process works on it, and a worker opens the app where it was', async () => {
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
  const { step, cell } = await ended(app.uuid);
  assert.deepEqual([step, cell], ['aborted', app.cell]);
  assert.equal((await put(app.secret, app.user)).status, 200);
});
