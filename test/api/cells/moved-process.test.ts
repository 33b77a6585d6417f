import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { continueMove } from '../../../src/cells/move/move.ts';
import { newUuid } from '../../../src/lib/ids.ts';
import { type App, addDeveloper, createApp, directoryOf } from '../../support/cells/tenants.ts';
import { startTwoCells, withoutWorkers } from '../../support/cells.ts';
import { EventStream } from '../../support/event-stream.ts';
import { until } from '../../support/until.ts';

/** One process that serves both cells while apps move between them. */
const server = await startTwoCells(withoutWorkers);
after(() => server.close());
const { api, cells } = server;
const directory = directoryOf(server);
const token = await addDeveloper(server);

const other = (cell: string) => (cell === 'eu1' ? 'eu2' : 'eu1');

async function createUser({ secret: key }: App, email = 'ada@example.com'): Promise<string> {
  const created = await api<{ id: string }>('POST', '/api/v1/users', { key, body: { email } });
  assert.equal(created.status, 201, created.text);
  return created.body.id;
}

function put({ secret: key }: App, user: string, name: string) {
  return api('PUT', `/api/v1/kv/${name}`, { key, body: { value: name, user } });
}

/** Moves the app while the process hears nothing about it, as one that was paused or has lost the directory. */
async function moveUnheard(app: App): Promise<void> {
  const caches = [cells.directory, server.home.credentials, cells.opened.get('eu2')?.services.credentials];
  let announced = 0;
  for (const cache of caches)
    if (cache !== undefined)
      cache.forget = () => {
        if (cache === cells.directory) announced += 1;
      };
  try {
    await directory.addMove(app.uuid, other(app.cell));
    const { step } = await continueMove({ directory, appId: app.uuid, sourceKeptMs: 0 });
    assert.equal(step, 'done');
    // Of the start and of the switch.
    await until(() => announced === 2);
  } finally {
    for (const cache of caches) Reflect.deleteProperty(cache ?? {}, 'forget');
  }
}

test('a process follows an app to another cell: writes pause and succeed again, and streams resume there', async () => {
  for (const app of [await createApp(server, token, 'One'), await createApp(server, token, 'Two')]) {
    const user = await createUser(app);
    assert.equal((await put(app, user, 'before')).status, 200);
    const path = `${server.baseUrl}/api/v1/kv_watch?user=${user}`;
    const stream = await EventStream.open(path, { 'x-api-key': app.secret });
    assert.equal((await stream.take()).event, 'ready');
    assert.equal((await put(app, user, 'shown')).status, 200);
    const shown = await stream.take();
    assert.equal(shown.data.key, 'shown');
    await directory.addMove(app.uuid, other(app.cell));
    await continueMove({
      ...{ directory, appId: app.uuid, sourceKeptMs: 0 },
      onPoint: async (point) => {
        if (point !== 'frozen') return;
        const refused = await put(app, user, 'during');
        assert.equal(refused.status, 503, refused.text);
        assert.ok(Number(refused.headers.get('retry-after')) > 0);
      },
    });
    // The process hears of the switch a moment later.
    await until(async () => (await put(app, user, 'after')).status === 200);
    assert.equal(await stream.next(), undefined, 'the stream on the source has ended');
    const resumed = await EventStream.open(path, { 'x-api-key': app.secret, 'last-event-id': String(shown.id) });
    assert.equal((await resumed.take()).event, 'ready');
    assert.equal((await resumed.take()).data.key, 'after');
    resumed.close();
    const read = await api('GET', `/api/v1/kv/before?user=${user}`, { key: app.secret });
    assert.equal(read.status, 200);
  }
});

/** Each of these is the first request of a process with an old place. */
const firstRequests: Record<string, (app: App, user: string) => ReturnType<typeof put>> = {
  'a write': (app, user) => put(app, user, 'late'),
  'a write that refers to nothing': ({ secret: key }) =>
    api('POST', '/api/v1/users', { key, body: { email: `${newUuid()}@example.com` } }),
  'a read of one resource': ({ secret: key }, user) => api('GET', `/api/v1/users/${user}`, { key }),
  'a list': ({ secret: key }) => api('GET', '/api/v1/users', { key }),
  'a request of a developer': ({ id }) => api('GET', `/protected/api/v1/developer/apps/${id}`, { token }),
};

for (const [what, send] of Object.entries(firstRequests))
  test(`${what} in a process that has not heard of the move is 503 once, and succeeds when repeated`, async () => {
    const app = await createApp(server, token, 'Late');
    const user = await createUser(app);
    assert.ok((await send(app, user)).status < 300);
    await moveUnheard(app);
    const late = await send(app, user);
    assert.equal(late.status, 503, late.text);
    assert.ok(Number(late.headers.get('retry-after')) > 0);
    const repeated = await send(app, user);
    assert.ok(repeated.status < 300, repeated.text);
  });
