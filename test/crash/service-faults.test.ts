import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { addJob } from '../../src/jobs/queue.ts';
import { AutomationsClient, graphOf } from '../support/automations.ts';
import { startEmbeddingService } from '../support/embedding-service.ts';
import { type Fault, type FaultProxy, openFaultProxy } from '../support/fault-proxy.ts';
import { type Json, knowledgeOf } from '../support/knowledge.ts';
import { startLanguageModel } from '../support/language-model.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startRerankingService } from '../support/reranking-service.ts';
import { createRandom } from '../support/rounds.ts';
import { type ErrorBody, startTestServer } from '../support/server.ts';
import { startWatch } from '../support/speed.ts';
import { startIssuer } from '../support/token-issuer.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';
import { WebhooksClient } from '../support/webhooks.ts';

/*
 * A proxy stands before the embedder, the reranker, the language model, the issuer of tokens and a receiver of
 * webhooks, and a resolver that fails before their names. In each round all of them have one fault. What a client sees
 * meanwhile is the documented fallback or a 503 with Retry-After; afterwards everything recovers, and nothing is lost.
 *   SERVICE_FAULTS=12 FAULT_SEED=1 node test/run.ts test/crash/service-faults.test.ts
 */
const rounds = Number(process.env.SERVICE_FAULTS ?? 1);
const seed = Number(process.env.FAULT_SEED ?? randomInt(2 ** 31));

const clock = new ManualClock();
const audience = 'https://quarry.example';
const services = {
  embedder: await startEmbeddingService(),
  reranker: await startRerankingService(),
  model: await startLanguageModel(),
  issuer: await startIssuer(() => clock.now(), audience),
  receiver: await WebhookReceiver.start(),
};
const proxies = {
  embedder: await openFaultProxy(new URL(services.embedder.url)),
  reranker: await openFaultProxy(new URL(services.reranker.url)),
  model: await openFaultProxy(new URL(services.model.url)),
  issuer: await openFaultProxy(new URL(services.issuer.issuer)),
  receiver: await openFaultProxy(new URL(services.receiver.origin)),
};
const at = (proxy: FaultProxy, path = '') => `http://127.0.0.1:${proxy.port}${path}`;
services.issuer.issuer = at(proxies.issuer);
/** What the resolver of names does instead of its work. */
let resolveWrongly: (() => Promise<string[]>) | undefined;

const server = await startTestServer({
  clock,
  resolve: async () => (resolveWrongly === undefined ? ['127.0.0.1'] : resolveWrongly()),
  logLevel: 'silent',
  env: {
    QUARRY_FETCH_ALLOW: '127.0.0.0/8',
    QUARRY_EMBEDDER: 'openai',
    QUARRY_EMBED_URL: at(proxies.embedder, '/v1'),
    QUARRY_EMBED_MODEL: 'test',
    QUARRY_EMBED_DIMENSIONS: '64',
    QUARRY_EMBED_QUERY_MS: '5000',
    QUARRY_RERANK_URL: at(proxies.reranker, '/v2/rerank'),
    QUARRY_RERANK_MODEL: 'rerank-test',
    QUARRY_RERANK_MS: '5000',
    QUARRY_LLM_URL: at(proxies.model, '/v1'),
    QUARRY_LLM_MODEL: 'small',
  },
});
after(async () => {
  for (const proxy of Object.values(proxies)) proxy.set({ kind: 'none' });
  await server.close();
  for (const proxy of Object.values(proxies)) await proxy.close();
  for (const service of Object.values(services)) await service.close();
});

const world = await server.provision.world();
const { api, provision } = server;
const key = world.app.secretKey;
const knowledge = knowledgeOf(server, { key });
const automations = new AutomationsClient(server, world.app);
const webhooks = new WebhooksClient(server, key);

/** Uses a component during a fault. Returns what must hold after the fault. */
type Use = (fault: Fault, round: number) => Promise<() => Promise<void>>;

const source = await knowledge.createSource({ org: world.org.id });
type Found = { data: Json[]; vectors_unavailable?: string; rerank_unavailable?: string };
async function search(body: Json): Promise<Found> {
  const found = await knowledge.send<Found>('POST', `/knowledge_sources/${source}/search`, body);
  assert.equal(found.status, 200, JSON.stringify(found.body));
  return found.body;
}

/** A pushed document is stored and found by its words, whatever the embedder does. Its vectors follow later. */
const useEmbedder: Use = async (_fault, round) => {
  const word = `gannet${round}`;
  const body = { content: { data: `The ${word} is white.` } };
  const pushed = await knowledge.send<{ id: string }>('POST', `/knowledge_sources/${source}/ingest`, body);
  assert.equal(pushed.status, 201, JSON.stringify(pushed.body));
  const { vectors_unavailable: reason } = await search({ query: 'gannet', mode: 'hybrid' });
  assert.ok(reason === undefined || /embed/.test(reason), reason);
  return async () => {
    const { status } = await knowledge.waitForIngestion(pushed.body.id);
    assert.equal(status, 'succeeded');
    const finds = async (mode: string) => {
      const { data } = await search({ query: `The ${word} is white.`, mode });
      return data.some(({ content }) => String(content).includes(word));
    };
    assert.ok(await finds('fulltext'));
    // Embeds what is due now, as the server does every thirty seconds.
    await addJob(server.db, 'embed_documents', {});
    await until(() => finds('vector'));
    // The job that embeds settles it afterwards.
    await until(async () => {
      const { body } = await knowledge.send<{ metadata: Json }>('GET', `/knowledge_ingestions/${pushed.body.id}`);
      return body.metadata.embedding === undefined;
    });
  };
};

/** Results keep the order from before reranking, and say so. */
const useReranker: Use = async (fault) => {
  const body = { query: 'puffin', mode: 'fulltext', rerank: true };
  const { data, rerank_unavailable: reason } = await search(body);
  assert.equal(data.length, 2);
  assert.equal(reason === undefined, fault.kind === 'delay', reason);
  return async () => assert.equal((await search(body)).rerank_unavailable, undefined);
};

/** A run ends with an error of the language model; its retry completes. */
const createGreeting = (seconds: number) =>
  automations.createAutomation({
    workflow: graphOf({
      ...{ id: 'g', kind: 'generate', timeout_seconds: seconds },
      messages: [{ role: 'user', content: 'Greet.' }],
    }),
  });
/** Only a silent model is waited for in vain. Of others, a busy machine must not make the time end. */
const greetings = { silence: await createGreeting(1), other: await createGreeting(60) };
const useModel: Use = async (fault) => {
  const { id } = fault.kind === 'silence' ? greetings.silence : greetings.other;
  const invoke = async () => automations.waitForEnd((await automations.invoke(id)).id);
  let run = await invoke();
  // On a busy machine, its time may end before its request has left.
  while (proxies.model.hits === 0) run = await invoke();
  if (fault.kind === 'delay') assert.equal(run.status, 'completed', JSON.stringify(run.error));
  else assert.match(`${run.status} ${run.error?.code}`, /^failed (llm_\w+|timeout)$/);
  return async () => {
    if (run.status === 'completed') return;
    const retry = async () => {
      const retried = await automations.call<{ id: string }>('POST', `/automation_runs/${run.id}/retry`);
      assert.equal(retried.status, 201, retried.text);
      return automations.waitForEnd(retried.body.id);
    };
    let again = await retry();
    // On a busy machine, the second that a run of a silent model has may end before the response.
    while (fault.kind === 'silence' && /timeout/.test(again.error?.code ?? '')) again = await retry();
    assert.equal(again.status, 'completed', JSON.stringify(again.error));
  };
};

/** Users whose keys are cached stay signed in. Others get a 503 that says when to try again. */
async function trustingApp() {
  const app = await provision.app();
  const body = { issuer: services.issuer.issuer, audience, create_users: true };
  const made = await api('POST', '/api/v1/identity_issuers', { key: app.secretKey, body });
  assert.equal(made.status, 201, made.text);
  return async () => {
    const token = await services.issuer.sign('ada');
    return api<ErrorBody>('GET', '/api/v1/users/me', { key: app.publishableKey, token });
  };
}
const signInCached = await trustingApp();
const useIssuer: Use = async (fault) => {
  const signIn = await trustingApp();
  const [cached, { status, body, headers, text }] = await Promise.all([signInCached(), signIn()]);
  assert.equal(cached.status, 200, cached.text);
  if (fault.kind === 'delay') assert.equal(status, 200, text);
  else {
    assert.deepEqual([status, body.error?.code], [503, 'unavailable'], text);
    assert.match(headers.get('retry-after') ?? '', /^\d+$/);
  }
  return async () => {
    clock.advance(31_000);
    assert.equal((await signIn()).status, 200);
  };
};

/** A delivery waits and then arrives unchanged. */
const { port } = proxies.receiver;
const byAddress = await webhooks.create(at(proxies.receiver, '/address'), ['round']);
const byName = await webhooks.create(`http://receiver.example:${port}/name`, ['round']);
const useReceiver: Use = async (fault, round) => {
  const event = await webhooks.emit('round', { round });
  const hooks = [byAddress, byName];
  const newest = async ({ id }: { id: string }) => (await webhooks.deliveries(id)).find((one) => one.event === event);
  // The server waits fifteen seconds for a silent receiver; the end of the fault ends its connection earlier.
  if (fault.kind !== 'silence')
    for (const hook of hooks) await until(async () => ((await newest(hook))?.log.length ?? 0) > 0);
  return async () => {
    for (const hook of hooks) {
      for (;;) {
        const delivery = await newest(hook);
        if (delivery?.state === 'delivered') break;
        assert.notEqual(delivery?.state, 'failed');
        if (delivery?.next_attempt_at !== undefined) {
          clock.advance(Math.max(0, Date.parse(delivery.next_attempt_at) - clock.now().getTime()));
          await webhooks.deliverDue();
        }
        await wait(20);
      }
      const { pathname } = new URL(hook.url);
      const messages = services.receiver.messages.filter(
        ({ path, event: { id } }) => path === pathname && id === event,
      );
      // The proxy itself returned 200, which is all that matters in a response.
      const wasSwallowed = acknowledges(fault);
      assert.ok(messages.length > 0 || wasSwallowed, `${pathname}: the message was lost`);
      assert.equal(new Set(messages.map(({ body }) => body)).size, messages.length > 0 ? 1 : 0);
    }
  };
};

const components: [FaultProxy, Use][] = [
  [proxies.embedder, useEmbedder],
  [proxies.reranker, useReranker],
  [proxies.model, useModel],
  [proxies.issuer, useIssuer],
  [proxies.receiver, useReceiver],
];

test('whatever external services do, the server falls back as documented, recovers and loses nothing', async (context) => {
  context.diagnostic(`repeat with FAULT_SEED=${seed}`);
  for (const text of ['The puffin is best.', 'A puffin.']) await knowledge.push(source, text);
  assert.equal((await signInCached()).status, 200);
  const random = createRandom(seed);
  const faults = listFaults(random);
  const first = Math.floor(random() * faults.length);
  const longest: Record<string, number> = {};
  for (let round = 0; round < rounds; round++) {
    const [name, fault, resolve] = faults[(first + round) % faults.length] as (typeof faults)[number];
    for (const [proxy] of components) proxy.set(fault);
    resolveWrongly = resolve;
    const checks = await Promise.all(components.map(([, use]) => use(fault, round))).catch((error: unknown) => {
      throw new Error(`During the fault: ${name}`, { cause: error });
    });
    for (const [index, [proxy]] of components.entries()) assert.ok(proxy.hits > 0, `${name} never hit ${index}`);
    for (const [proxy] of components) proxy.set({ kind: 'none' });
    resolveWrongly = undefined;
    const healed = startWatch();
    await Promise.all(checks.map((check) => check())).catch((error: unknown) => {
      throw new Error(`After the fault: ${name}`, { cause: error });
    });
    longest[name] = Math.round(healed.passedMs());
  }
  context.diagnostic(`${rounds} faults of each of ${components.length + 1} services`);
  context.diagnostic(`recovery in ms: ${JSON.stringify(longest)}`);
});

/** Each fault of a service, and what name resolution does meanwhile. */
function listFaults(random: () => number): [string, Fault, () => Promise<string[]>][] {
  const bytes = (max: number) => 1 + Math.floor(random() * max);
  const noise = Buffer.from(Array.from({ length: 4_000 }, () => Math.floor(random() * 256)));
  const fail = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }));
  const json = (body: string): Fault => ({ kind: 'status', status: 200, body });
  const ok = Buffer.from('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{"data":[');
  return [
    ['down', { kind: 'refuse' }, fail('ENOTFOUND')],
    ['status 500', { kind: 'status', status: 500 }, fail('EAI_AGAIN')],
    ['garbage', json('{"data":[{"embedding":[1e999]},{"index":-1}],"keys":7}'), async () => ['not an address']],
    ['slow', { kind: 'delay', ms: 60 }, () => wait(60, ['127.0.0.1'])],
    ['torn', { kind: 'noise', bytes: ok }, async () => []],
    ['status 503', { kind: 'status', status: 503, body: '{"error":"busy"}' }, fail('ESERVFAIL')],
    ['no HTTP', { kind: 'noise', bytes: noise }, async () => ['10.0.0.1', '127.0.0.1']],
    ['cut', { kind: 'cut-response', afterBytes: bytes(60) }, fail('ETIMEOUT')],
    ['reset in the body', { kind: 'noise', bytes: ok, reset: true }, fail('ECONNRESET')],
    ['no JSON', json('<html>Sign in to the network</html>'), async () => ['169.254.169.254']],
    ['cut request', { kind: 'cut-request', afterBytes: bytes(60) }, fail('ECONNREFUSED')],
    ['silent', { kind: 'silence' }, () => wait(3_000, [], { ref: false })],
  ];
}

function acknowledges(fault: Fault): boolean {
  if (fault.kind === 'noise') return fault.bytes.toString('latin1', 0, 12) === 'HTTP/1.1 200';
  return fault.kind === 'status' && fault.status === 200;
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await wait(20);
}
