import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { after, before, test } from 'node:test';
import { PlatformClient } from '@archastro/sdk';
import { parseId } from '../../../src/lib/ids.ts';
import { AutomationsClient, graphOf, type Run } from '../../support/automations.ts';
import type { TestTenants } from '../../support/provisioner.ts';
import { startTestServer, type TestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

let server: TestServer;
let world: TestTenants;
let client: AutomationsClient;

before(async () => {
  server = await startTestServer();
  world = await server.provision.world();
  client = new AutomationsClient(server, world.app);
});
after(() => server.close());

const waitForGo = graphOf(
  { id: 'w', kind: 'wait_for_signal', name: 'go', on_success: 'd' },
  { id: 'd', kind: 'complete' },
);

/** An open stream whose frames are taken one by one. */
class Stream {
  readonly response: IncomingMessage;
  readonly #request: ClientRequest;
  #text = '';
  ended = false;

  private constructor(outgoing: ClientRequest, response: IncomingMessage) {
    this.#request = outgoing;
    this.response = response;
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      this.#text += chunk;
    });
    response.on('end', () => {
      this.ended = true;
    });
  }

  static async open(run: string, headers: Record<string, string> = {}): Promise<Stream> {
    const outgoing = request(`${server.baseUrl}/api/v1/automation_runs/${run}/stream`, {
      headers: { 'x-api-key': world.app.secretKey, ...headers },
      agent: false,
    });
    outgoing.end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return new Stream(outgoing, response);
  }

  /** The next frame's text; undefined when the stream has ended. */
  async frame(): Promise<string | undefined> {
    for (;;) {
      const end = this.#text.indexOf('\n\n');
      if (end >= 0) {
        const frame = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        return frame;
      }
      if (this.ended) return undefined;
      await Promise.race([once(this.response, 'data'), once(this.response, 'end')]);
    }
  }

  async event(): Promise<{ id: number; run: Run } | undefined> {
    let frame = await this.frame();
    while (frame === ': heartbeat') frame = await this.frame();
    if (frame === undefined) return undefined;
    const match = /^id: (\d+)\nevent: run_update\ndata: (.*)$/.exec(frame);
    assert.ok(match, frame);
    return { id: Number(match[1]), run: JSON.parse(match[2] ?? '') as Run };
  }

  close(): void {
    this.#request.destroy();
  }
}

test('a published client invokes, reads, pages the journal and follows the stream', async () => {
  const sdk = new PlatformClient({
    baseUrl: server.baseUrl,
    accessToken: world.member.token,
    defaultHeaders: { 'x-api-key': world.app.publishableKey },
  });
  await client.createAutomation({ lookup_key: 'sdk', workflow: waitForGo });
  const run = await sdk.automations.invoke('sdk', { payload: { a: 1 } });
  const seen: string[] = [];
  for await (const event of sdk.automation_runs.stream(run.id)) {
    const { event: name, data } = event;
    assert.equal(name, 'run_update');
    seen.push(data.status);
    if (data.status === 'running') await client.call('POST', `/automation_runs/${run.id}/signal`, { name: 'go' });
  }
  assert.ok(['pending', 'running'].includes(seen[0] ?? ''));
  assert.equal(seen.at(-1), 'completed');
  assert.equal((await sdk.automation_runs.get(run.id)).status, 'completed');
  const sequences: number[] = [];
  let afterCursor: string | undefined;
  do {
    const page = await sdk.automation_runs.journal(run.id, { limit: 3, ...(afterCursor ? { afterCursor } : {}) });
    sequences.push(...page.data.map((entry) => entry.sequence));
    afterCursor = page.has_more ? page.after_cursor : undefined;
  } while (afterCursor !== undefined);
  assert.deepEqual(
    sequences,
    sequences.map((_, index) => index + 1),
  );
});

test('the first event arrives immediately, the terminal one last, then the stream ends', async () => {
  const { id } = await client.createAutomation({ workflow: waitForGo });
  const { id: run } = await client.invoke(id);
  await client.waitUntilWaiting(run);
  const stream = await Stream.open(run);
  assert.equal(stream.response.statusCode, 200);
  assert.match(stream.response.headers['content-type'] ?? '', /^text\/event-stream/);
  assert.match(stream.response.headers['cache-control'] ?? '', /no-cache/);
  assert.ok(stream.response.headers['x-request-id']);
  const first = await stream.event();
  assert.equal(first?.run.status, 'running');
  await client.call('POST', `/automation_runs/${run}/signal`, { name: 'go' });
  const last = await stream.event();
  assert.equal(last?.run.status, 'completed');
  assert.ok((last?.id ?? 0) > (first?.id ?? 0));
  assert.deepEqual(last?.run, await client.run(run));
  assert.equal(await stream.event(), undefined);

  const late = await Stream.open(run, { 'last-event-id': String(first?.id) });
  assert.deepEqual(await late.event(), last);
  assert.equal(await late.event(), undefined);
});

test('a reader that reconnects gets every change that it has missed, each as the run was then', async () => {
  const { id } = await client.createAutomation({ workflow: null });
  const seen = [await client.invoke(id)];
  const run = seen[0]?.id ?? '';
  const early = await Stream.open(run);
  assert.deepEqual(await early.event(), { id: 1, run: seen[0] });
  const claim = async () => {
    const claimed = await client.call<Run & { claim?: string }>('POST', `/automations/${id}/claim`, {
      lease_seconds: 60,
    });
    const { claim: _, ...shown } = claimed.body;
    return shown;
  };
  seen.push(await claim());
  assert.deepEqual(await early.event(), { id: 2, run: seen[1] });
  await server.db`update automation_runs set lease_until = now() - interval '1 second' where lease_until is not null`;
  seen.push(await client.waitUntil(run, ({ status }) => status === 'pending'));
  assert.deepEqual(await early.event(), { id: 3, run: seen[2] });
  seen.push(await claim());
  // A report renews the claim, which a reader who is late would see in this change.
  assert.deepEqual(await early.event(), { id: 4, run: seen[3] });
  await client.call('POST', `/automation_runs/${run}/status`, { status: 'running' });
  const report = { status: 'completed', result: { frames: 24 } };
  seen.push((await client.call<Run>('POST', `/automation_runs/${run}/status`, report)).body);
  assert.deepEqual(
    seen.map(({ status }) => status),
    ['pending', 'running', 'pending', 'running', 'completed'],
  );
  const versions = seen.map((each, index) => ({ id: index + 1, run: each }));
  assert.deepEqual(await early.event(), versions[4]);
  assert.equal(await early.event(), undefined);
  for (let last = 0; last < versions.length; last++) {
    const stream = await Stream.open(run, { 'last-event-id': String(last) });
    for (const expected of versions.slice(last)) assert.deepEqual(await stream.event(), expected);
    assert.equal(await stream.event(), undefined);
  }
});

test('a run of a graph is also replayed as it was', async () => {
  const { id } = await client.createAutomation({ workflow: waitForGo });
  const started = await client.invoke(id);
  // What a run waited for is not part of its earlier states.
  const { waiting_for: _past, ...running } = (await client.waitUntilWaiting(started.id)) as Run & {
    waiting_for: unknown;
  };
  await client.call('POST', `/automation_runs/${started.id}/cancel`);
  const stream = await Stream.open(started.id, { 'last-event-id': '0' });
  assert.deepEqual(await stream.event(), { id: 1, run: started });
  assert.deepEqual(await stream.event(), { id: 2, run: running });
  assert.deepEqual(await stream.event(), { id: 3, run: await client.run(started.id) });
  assert.equal(await stream.event(), undefined);
});

test('a reader that missed too many changes gets a note and the current state', async () => {
  const { id } = await client.createAutomation({ workflow: null });
  const { id: run } = await client.invoke(id);
  const uuid = parseId('automationRun', run) ?? '';
  for (let change = 0; change < 120; change++)
    await server.db`
      update automation_runs set status = 'running', version = version + 1,
        changes = note_change(changes, version + 1, 'running', now(), null) where id = ${uuid}`;
  const late = await Stream.open(run, { 'last-event-id': '20' });
  assert.equal(await late.frame(), ': the changes after 20 are not kept');
  assert.equal((await late.event())?.id, 121);
  late.close();
  const within = await Stream.open(run, { 'last-event-id': '21' });
  for (let version = 22; version <= 121; version++) assert.equal((await within.event())?.id, version);
  within.close();
});

test('one change reaches every stream of the run', async () => {
  const { id } = await client.createAutomation({ workflow: waitForGo });
  const { id: run } = await client.invoke(id);
  await client.waitUntilWaiting(run);
  const streams = await Promise.all(Array.from({ length: 20 }, () => Stream.open(run)));
  for (const stream of streams) assert.equal((await stream.event())?.run.status, 'running');
  await client.call('POST', `/automation_runs/${run}/cancel`);
  for (const stream of streams) {
    assert.equal((await stream.event())?.run.status, 'cancelled');
    assert.equal(await stream.event(), undefined);
  }
});

test('a thousand streams that open and close leave nothing behind', async () => {
  const { id } = await client.createAutomation({ workflow: waitForGo });
  const { id: run } = await client.invoke(id);
  await client.waitUntilWaiting(run);
  for (let round = 0; round < 10; round++) {
    const streams = await Promise.all(Array.from({ length: 100 }, () => Stream.open(run)));
    await Promise.all(streams.map((stream) => stream.event()));
    for (const stream of streams) stream.close();
  }
  await until(() => server.services.streams.size === 0);
  assert.equal(server.services.streams.topicCount, 0);
});

test('a server that stops tells its streams when to reconnect', async () => {
  const other = await startTestServer();
  try {
    const app = await other.provision.app();
    const own = new AutomationsClient(other, app);
    const { id } = await own.createAutomation({ workflow: waitForGo });
    const { id: run } = await own.invoke(id);
    await own.waitUntilWaiting(run);
    const outgoing = request(`${other.baseUrl}/api/v1/automation_runs/${run}/stream`, {
      headers: { 'x-api-key': app.secretKey },
      agent: false,
    });
    outgoing.end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    let text = '';
    response.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    await once(response, 'data');
    await Promise.all([once(response, 'end'), other.server.close()]);
    assert.match(text, /run_update[\s\S]*\n\nretry: \d+\n\n$/);
  } finally {
    await other.close();
  }
});
