import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import type { CellSet, OpenCell } from '../../src/cells/cell-set.ts';
import type { Directory } from '../../src/cells/directory.ts';
import { createFront } from '../../src/cells/front.ts';
import type { Database } from '../../src/db/database.ts';
import { newUuid } from '../../src/lib/ids.ts';

test('a key of a cell that recovers while the other cells are asked is unavailable, not unknown', async () => {
  let isUp = false;
  const db = (async () => {
    isUp = true;
    return [];
  }) as unknown as Database;
  const open = [{ settings: { name: 'home' }, opened: { db } as OpenCell }];
  const set = {
    listOpen: () => open,
    listStates: () => [
      ['home', true],
      ['other', isUp],
    ],
  } as unknown as CellSet;
  const front = createFront({ set, directory: {} as Directory, readers: { appOfSignIn: () => undefined } });
  const request = new IncomingMessage(new Socket());
  request.url = '/api/v1/kv';
  request.headers['x-api-key'] = `sk_${'a'.repeat(32)}`;
  await new Promise<void>((own) => front.dispatch(request, new ServerResponse(request), () => own()));
  assert.ok(isUp);
  assert.equal(front.refusalOf(request)?.code, 'unavailable');
});

test('a credential whose app is known needs no cell but its own, even after the places of apps are read again', async () => {
  const app = newUuid();
  const db = (async () => [{ appId: app }]) as unknown as Database;
  const handled: string[] = [];
  const opened = { db, handle: () => handled.push('own') } as unknown as OpenCell;
  let open = [{ settings: { name: 'own' }, opened }];
  const set = {
    listOpen: () => open,
    listStates: () => [
      ['own', true],
      ['other', false],
    ],
    get: () => opened,
  } as unknown as CellSet;
  // It has forgotten every place.
  const directory = {
    peek: () => undefined,
    find: async () => ({ cell: 'own', state: 'here' }),
  } as unknown as Directory;
  const front = createFront({ set, directory, readers: { appOfSignIn: () => undefined } });
  const send = async () => {
    const request = new IncomingMessage(new Socket());
    request.url = '/api/v1/kv';
    request.headers['x-api-key'] = `sk_${'a'.repeat(32)}`;
    front.dispatch(request, new ServerResponse(request), () => handled.push('refused'));
    await front.settled();
  };
  await send();
  open = [];
  await send();
  assert.deepEqual(handled, ['own', 'own']);
});

test('a request whose client leaves while its cell is looked up is handed to none', async () => {
  const looked = Promise.withResolvers<{ appId: string }[]>();
  const handled: string[] = [];
  const opened = { db: () => looked.promise, handle: () => handled.push('own') } as unknown as OpenCell;
  const set = {
    listOpen: () => [{ settings: { name: 'own' }, opened }],
    listStates: () => [['own', true]],
    get: () => opened,
  } as unknown as CellSet;
  const directory = {
    peek: () => undefined,
    find: async () => ({ cell: 'own', state: 'here' }),
  } as unknown as Directory;
  const front = createFront({ set, directory, readers: { appOfSignIn: () => undefined } });
  const request = new IncomingMessage(new Socket());
  request.url = '/api/v1/kv';
  request.headers['x-api-key'] = `sk_${'a'.repeat(32)}`;
  const response = new ServerResponse(request);
  front.dispatch(request, response, () => handled.push('refused'));
  Object.assign(response, { _closed: true });
  looked.resolve([{ appId: newUuid() }]);
  await front.settled();
  assert.deepEqual(handled, []);
});
