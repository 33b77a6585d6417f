import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, IncomingMessage, request, type Server, ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { after, before, test } from 'node:test';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Database } from '../../src/db/database.ts';
import { createStreamBudget } from '../../src/http/streams/hub-options.ts';
import { StreamHub, topicOf } from '../../src/http/streams/sse.ts';
import { createLogger } from '../../src/lib/log.ts';
import { startWatch } from '../support/speed.ts';

/* The hub without Fastify and without PostgreSQL: notifications and snapshots come from the test. */

let notify: (topic: string) => void = () => {};
const listenDatabase = {
  async listen(_channel: string, onNotify: (topic: string) => void) {
    notify = onNotify;
    return { unlisten: async () => {} };
  },
} as unknown as Database;

const state = { version: 1, data: 'x' as unknown, ended: false, loads: 0, gone: false };
/** What the thing was before, by version; what is not in it is forgotten. */
const past = new Map<number, unknown>();
let hub: StreamHub;
let server: Server;
let responses: ServerResponse[] = [];

before(async () => {
  hub = new StreamHub({
    listenDatabase,
    log: createLogger('silent'),
    streamSecondsMax: 60,
    budget: createStreamBudget({ streamsMax: 100, unreadBytesMax: 1024 * 1024 * 1024 }),
    heartbeatMs: 30,
    stalledMs: 0,
  });
  hub.register('thing', {
    event: 'changed',
    filterVisible: async (_caller, ids) => [...ids],
    async load(_appId, ids) {
      state.loads += 1;
      return state.gone ? [] : ids.map((id) => ({ id, version: state.version, data: state.data, ended: state.ended }));
    },
  });
  hub.register('kept', {
    event: 'changed',
    filterVisible: async (_caller, ids) => [...ids],
    async load(_appId, ids) {
      const { version, data, ended } = state;
      const since = (after: number) => {
        const versions = Array.from({ length: version - after }, (_, index) => after + 1 + index);
        if (!versions.every((each) => past.has(each))) return undefined;
        return versions.map((each) => ({ version: each, data: past.get(each) }));
      };
      return ids.map((id) => ({ id, version, data, ended, since }));
    },
  });
  await hub.start();
  server = createServer((incoming, response) => {
    responses.push(response);
    const reply = { raw: response, hijack() {}, getHeaders: () => ({}) } as unknown as FastifyReply;
    const kind = incoming.url?.startsWith('/kept') ? 'kept' : 'thing';
    hub.open(incoming as unknown as FastifyRequest, reply, kind, 'app', incoming.url ?? '');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
after(async () => {
  await hub.close();
  server.closeAllConnections();
  server.close();
});

async function open(path: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  const { port } = server.address() as AddressInfo;
  const outgoing = request({ host: '127.0.0.1', port, path, headers, agent: false });
  outgoing.end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  return response;
}

function change(data: unknown, ended = false): void {
  Object.assign(state, { version: state.version + 1, data, ended });
  notify(topicOf('thing', 'app', '/a'));
}

test('events, heartbeats and the end come in their order, and a change is loaded once for all', async () => {
  const streams = await Promise.all([open('/a'), open('/a'), open('/a')]);
  let text = '';
  streams[0]?.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  for (const other of streams.slice(1)) other.resume();
  while (!text.includes(': heartbeat\n\n')) await once(streams[0] ?? server, 'data');
  const loads = state.loads;
  change({ line: 'a\nb' });
  while (!text.includes('id: 2\n')) await once(streams[0] ?? server, 'data');
  assert.equal(state.loads, loads + 1);
  change('last', true);
  await Promise.all(streams.map((stream) => once(stream, 'end')));
  const frames = text.split('\n\n').filter((frame) => frame !== '' && frame !== ': heartbeat');
  assert.deepEqual(frames, [
    'id: 1\nevent: changed\ndata: "x"',
    'id: 2\nevent: changed\ndata: {"line":"a\\nb"}',
    'id: 3\nevent: changed\ndata: "last"',
  ]);
  assert.equal(hub.size, 0);
});

test('a stalled reader holds one event at most, and is disconnected', async () => {
  state.ended = false;
  responses = [];
  const stream = await open('/a');
  stream.pause();
  const [response] = responses;
  assert.ok(response);
  const big = 'y'.repeat(4 * 1024 * 1024);
  for (let n = 0; n < 20 && !response.destroyed; n++) {
    change(`${n}${big}`);
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(response.writableLength < 3 * big.length);
  }
  if (!response.closed) await once(response, 'close');
  assert.equal(hub.size, 0);
  stream.destroy();
});

test('an unread response counts after its stream has ended, until its reader is disconnected', async () => {
  responses = [];
  change('z'.repeat(16 * 1024 * 1024), true);
  const stream = await open('/a');
  stream.pause();
  const [response] = responses;
  assert.ok(response);
  if (!response.closed) await once(response, 'close');
  assert.equal(response.writableFinished, false);
  assert.equal(hub.unreadBytes, 0);
  stream.destroy();
  state.ended = false;
});

test('a thing that is gone ends its streams', async () => {
  state.data = 'z';
  const stream = await open('/a');
  stream.resume();
  await once(stream, 'data');
  state.gone = true;
  notify(topicOf('thing', 'app', '/a'));
  await once(stream, 'end');
  assert.equal(hub.topicCount, 0);
});

/** The versions and notes that a stream has brought so far, without heartbeats. */
function frames(text: string): string[] {
  return text
    .split('\n\n')
    .filter((frame) => frame !== '' && frame !== ': heartbeat')
    .map((frame) => frame.replace(/^id: (\d+)\nevent: changed\ndata: "(.*)"$/, '$1 $2'));
}

function become(version: number, ended = false): void {
  for (let each = state.version + 1; each <= version; each++) past.set(each, `v${each}`);
  Object.assign(state, { version, data: `v${version}`, ended });
}

async function readUntil(stream: IncomingMessage, what: string): Promise<() => string> {
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  while (!text.includes(what)) await once(stream, 'data');
  return () => text;
}

test('missed changes come in order, then new ones, and none twice', async () => {
  past.clear();
  Object.assign(state, { version: 0, gone: false });
  become(5);
  const [returning, fresh, current] = await Promise.all([
    open('/kept/1', { 'last-event-id': '2' }),
    open('/kept/1'),
    open('/kept/1', { 'last-event-id': '5' }),
  ]);
  const texts = await Promise.all([returning, fresh, current].map((stream) => readUntil(stream, 'v5')));
  // Faster than anybody can look: three changes are one notification.
  become(7);
  become(8, true);
  notify(topicOf('kept', 'app', '/kept/1'));
  await Promise.all([returning, fresh, current].map((stream) => once(stream, 'end')));
  const later = ['6 v6', '7 v7', '8 v8'];
  assert.deepEqual(
    texts.map((text) => frames(text())),
    [
      ['3 v3', '4 v4', '5 v5', ...later],
      ['5 v5', ...later],
      ['5 v5', ...later],
    ],
  );
});

test('changes that are no longer kept are reported, followed by the current state', async () => {
  past.clear();
  Object.assign(state, { version: 0 });
  become(9, true);
  past.delete(4);
  const cases = [
    { id: '3', wanted: [': the changes after 3 are not kept', '9 v9'] },
    { id: '4', wanted: ['5 v5', '6 v6', '7 v7', '8 v8', '9 v9'] },
    { id: '9', wanted: ['9 v9'] },
    { id: '12', wanted: ['9 v9'] },
    { id: 'nonsense', wanted: ['9 v9'] },
  ];
  for (const { id, wanted } of cases) {
    const stream = await open('/kept/2', { 'last-event-id': id });
    const text = await readUntil(stream, 'v9');
    if (!stream.readableEnded) await once(stream, 'end');
    assert.deepEqual(frames(text()), wanted, id);
  }
});

test('a stream ends when it has been open for as long as it may, and no heartbeat later', async () => {
  const short = new StreamHub({
    listenDatabase,
    log: createLogger('silent'),
    streamSecondsMax: 0.3,
    budget: createStreamBudget({ streamsMax: 10, unreadBytesMax: 1024 }),
  });
  short.register('thing', {
    filterVisible: async (_caller, ids) => [...ids],
    event: 'changed',
    load: async (_appId, ids) => ids.map((id) => ({ id, version: 1, data: 'x', ended: false })),
  });
  await short.start();
  const streams = createServer((incoming, response) => {
    const reply = { raw: response, hijack() {}, getHeaders: () => ({}) } as unknown as FastifyReply;
    short.open(incoming as unknown as FastifyRequest, reply, 'thing', 'app', incoming.url ?? '');
  });
  await once(streams.listen(0, '127.0.0.1'), 'listening');
  const { port } = streams.address() as AddressInfo;
  const watch = startWatch();
  const texts = await Promise.all(
    ['/a', '/b'].map(async (path) => (await fetch(`http://127.0.0.1:${port}${path}`)).text()),
  );
  assert.ok(watch.passedMs() >= 290);
  watch.within(3_000, 'The end of both');
  for (const text of texts) assert.match(text, /event: changed.*retry: 1000/s);
  await short.close();
  streams.closeAllConnections();
  streams.close();
});

test('the streams of an app with many changes leave every other app its turn', async () => {
  const busy = new StreamHub({
    listenDatabase,
    log: createLogger('silent'),
    streamSecondsMax: 60,
    budget: createStreamBudget({ streamsMax: 100_000, unreadBytesMax: 1024 * 1024 * 1024 }),
  });
  const loadedApps: string[] = [];
  busy.register('thing', {
    filterVisible: async (_caller, ids) => [...ids],
    event: 'changed',
    async load(appId, ids) {
      loadedApps.push(appId);
      await nextTurn();
      return ids.map((id) => ({ id, version: 1, data: 'x', ended: true }));
    },
  });
  await busy.start();
  for (let n = 0; n < 3_000; n++) openUnread(busy, 'many', `/${n}`);
  openUnread(busy, 'few', '/a');
  while (busy.size > 0) await nextTurn();
  assert.deepEqual(loadedApps.slice(0, 3), ['many', 'few', 'many']);
  await busy.close();
});

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** A stream whose response is connected to nothing. */
function openUnread(streams: StreamHub, appId: string, id: string): void {
  const incoming = Object.assign(new IncomingMessage(new Socket()), { method: 'GET' });
  const reply = { raw: new ServerResponse(incoming), hijack() {}, getHeaders: () => ({}) };
  streams.open(incoming as unknown as FastifyRequest, reply as unknown as FastifyReply, 'thing', appId, id);
}
