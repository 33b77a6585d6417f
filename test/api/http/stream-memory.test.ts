import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { EventStream } from '../../support/event-stream.ts';
import type { TestApp } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';
import { WebhooksClient } from '../../support/webhooks.ts';

const kib = 1024;
/** A single app gets half of the memory. */
const shareBytes = 512 * kib;
const eventBytes = 240 * kib;
/** More than the connections of the system hold. */
const eventsCount = 32;
const stalledCount = 3;

let server: TestServer;
const streams: EventStream[] = [];

before(async () => {
  server = await startTestServer({ env: { QUARRY_STREAM_MEMORY_MB: '1' } });
});
after(async () => {
  for (const stream of streams) stream.close();
  await server.close();
});

async function open({ secretKey }: TestApp, lastEventId?: number): Promise<EventStream> {
  const stream = await EventStream.open(`${server.baseUrl}/api/v1/events/stream`, {
    'x-api-key': secretKey,
    ...(lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) }),
  });
  streams.push(stream);
  return stream;
}

/** The positions of the events that a stream shows, up to this many or until it ends. */
async function readPositions(stream: EventStream, count: number): Promise<number[]> {
  const positions: number[] = [];
  while (positions.length < count) {
    const event = await stream.next();
    if (event === undefined) break;
    if (event.event === 'event') positions.push(event.id);
  }
  return positions;
}

test('readers that read nothing keep to the share of their app, are ended and resume without loss', async () => {
  const [app, other] = [await server.provision.app(), await server.provision.app()];
  const first = await open(app);
  const from = (await first.take()).id;
  const client = new WebhooksClient(server, app.secretKey);
  const text = 'x'.repeat(eventBytes);
  for (let n = 0; n < eventsCount; n++) await client.emit('large', { text });
  const expected = await readPositions(first, eventsCount);
  assert.equal(expected.length, eventsCount);
  first.close();

  const hub = server.services.streams;
  await until(() => hub.size === 0);
  const stalled: EventStream[] = [];
  for (let n = 0; n < stalledCount; n++) {
    const stream = await open(app, from);
    stream.response.pause();
    stalled.push(stream);
  }
  let most = 0;
  await until(() => {
    most = Math.max(most, hub.unreadBytes);
    return hub.unreadBytes >= shareBytes;
  });
  const served = await open(other);
  await served.take();
  await new WebhooksClient(server, other.secretKey).emit('small');
  assert.equal((await served.take()).data.type, 'small');
  await until(() => {
    most = Math.max(most, hub.unreadBytes);
    return hub.size <= stalledCount;
  });
  assert.ok(most < shareBytes + 2 * eventBytes, `${most} bytes`);

  let endedCount = 0;
  for (const stream of stalled) {
    stream.response.resume();
    const seen = await readPositions(stream, eventsCount);
    if (seen.length < eventsCount) {
      endedCount += 1;
      seen.push(...(await readPositions(await open(app, seen.at(-1) ?? from), eventsCount - seen.length)));
    }
    assert.deepEqual(seen, expected);
  }
  assert.ok(endedCount > 0);
});
