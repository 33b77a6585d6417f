import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { after, before, test } from 'node:test';
import { PlatformClient } from '@archastro/sdk';
import { AutomationsClient, graphOf, type Run } from '../support/automations.ts';
import type { TestWorld } from '../support/provisioner.ts';
import { startTestServer, type TestServer } from '../support/server.ts';

let server: TestServer;
let world: TestWorld;
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
  await client.automation({ lookup_key: 'sdk', workflow: waitForGo });
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

test('the first event comes at once, the terminal one last, then the stream ends', async () => {
  const { id } = await client.automation({ workflow: waitForGo });
  const { id: run } = await client.invoke(id);
  await client.waiting(run);
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

test('one change reaches every stream of the run', async () => {
  const { id } = await client.automation({ workflow: waitForGo });
  const { id: run } = await client.invoke(id);
  await client.waiting(run);
  const streams = await Promise.all(Array.from({ length: 20 }, () => Stream.open(run)));
  for (const stream of streams) assert.equal((await stream.event())?.run.status, 'running');
  await client.call('POST', `/automation_runs/${run}/cancel`);
  for (const stream of streams) {
    assert.equal((await stream.event())?.run.status, 'cancelled');
    assert.equal(await stream.event(), undefined);
  }
});

test('a thousand streams that come and go leave nothing behind', async () => {
  const { id } = await client.automation({ workflow: waitForGo });
  const { id: run } = await client.invoke(id);
  await client.waiting(run);
  for (let round = 0; round < 10; round++) {
    const streams = await Promise.all(Array.from({ length: 100 }, () => Stream.open(run)));
    await Promise.all(streams.map((stream) => stream.event()));
    for (const stream of streams) stream.close();
  }
  while (server.services.streams.size > 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(server.services.streams.topicCount, 0);
});

test('a server that stops tells its streams when to come back', async () => {
  const other = await startTestServer();
  try {
    const app = await other.provision.app();
    const own = new AutomationsClient(other, app);
    const { id } = await own.automation({ workflow: waitForGo });
    const { id: run } = await own.invoke(id);
    await own.waiting(run);
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
