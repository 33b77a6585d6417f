import { AutomationsClient, graphOf } from '../support/automations.ts';
import type { TestServer } from '../support/server.ts';

/*
 * Texts that are stored by one request and read by later work: schemas, filters, templates, schedules, metadata and
 * results. Each story stores one of a size, and does what reads it. `times` is 1 or 4; 4 is close to the limit.
 */

type Story = { name: string; run(times: number): Promise<unknown> };

type Send = <T = { id: string }>(method: string, path: string, body?: unknown) => Promise<T>;

const object = (count: number, value: (index: number) => unknown = () => 1) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value(index)]));

export async function createStories(server: TestServer): Promise<Story[]> {
  const app = await server.provision.app();
  const user = await server.provision.user(app);
  const agent = await server.provision.agent(app);
  const automations = new AutomationsClient(server, app);
  const send: Send = async <T>(method: string, path: string, body?: unknown) => {
    const given = body === undefined ? {} : { body: body as object };
    const response = await server.api<T>(method, `/api/v1${path}`, { key: app.secretKey, ...given });
    if (response.status >= 500) throw new Error(`${method} ${path}: ${response.text.slice(0, 300)}`);
    return response.body;
  };
  const source = await send('POST', '/knowledge_sources', { type: 'knowledge/documents', agent: agent.id });
  return [
    ...storiesOfRuns(automations, send),
    ...storiesOfTriggers(automations, send),
    ...storiesOfMetadata(send, source.id, agent.id, user.id),
  ];
}

/** Creates, invokes and reads an automation. It may be refused: then that is what is measured. */
async function invoke(automations: AutomationsClient, body: Record<string, unknown>, payload: object): Promise<void> {
  const created = await automations.call<{ id: string }>('POST', '/automations', {
    ...{ name: 'story', type: 'invoked' },
    ...body,
  });
  if (created.status >= 500) throw new Error(created.text.slice(0, 300));
  if (created.status !== 201) return;
  const at = `/automations/${created.body.id}`;
  if ((await automations.call('POST', `${at}/activate`)).status !== 200) return;
  const started = await automations.call<{ id: string }>('POST', `${at}/invoke`, { payload });
  if (started.status === 200) {
    await automations.waitForEnd(started.body.id);
    await automations.journalPage(started.body.id);
  } else if (started.status >= 500) throw new Error(started.text.slice(0, 300));
  await automations.call('DELETE', at);
}

function storiesOfRuns(automations: AutomationsClient, send: Send): Story[] {
  const complete = (result: unknown) => graphOf({ id: 'done', kind: 'complete', result });
  const of = (name: string, build: (times: number) => [Record<string, unknown>, object]): Story => {
    // Built once, because this process is also the client.
    const built = new Map<number, [Record<string, unknown>, object]>();
    return {
      name,
      run(times) {
        const made = built.get(times) ?? build(times);
        built.set(times, made);
        return invoke(automations, ...made);
      },
    };
  };
  const nodes = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      ...{ id: `n${index}`, kind: 'wait', seconds: 0 },
      ...(index + 1 < count ? { on_success: `n${index + 1}` } : {}),
    }));
  return [
    of('templates in one text', (times) => [{ workflow: complete('{{$.a}} '.repeat(times * 2_000)) }, { a: 'x' }]),
    of('templates that do not end', (times) => [{ workflow: complete('{{'.repeat(times * 20_000)) }, {}]),
    of('a long expression', (times) => [{ workflow: complete(`{{1${' + 1'.repeat(times * 600)}}}`) }, {}]),
    of('nested parentheses', (times) => [
      { workflow: complete(`{{${'('.repeat(times * 500)}1${')'.repeat(times * 500)}}}`) },
      {},
    ]),
    of('a result of many members', (times) => [{ workflow: complete(object(times * 4_000)) }, {}]),
    of('members with templates', (times) => [
      { workflow: complete(object(times * 500, () => '{{$.a}}')) },
      { a: 'x'.repeat(50) },
    ]),
    of('a payload of many members', (times) => [{ workflow: complete('{{$}}') }, object(times * 5_000)]),
    of('a payload of texts', (times) => [
      { workflow: complete('{{$}}') },
      object(times * 60, () => '\u0001é'.repeat(300)),
    ]),
    of('a graph of many nodes', (times) => [{ workflow: graphOf(...nodes(times * 20)) }, {}]),
    of('a schema of many members', (times) => [
      {
        workflow: complete(1),
        input_schema: { type: 'object', properties: object(times * 1_000, () => ({ type: 'string' })) },
      },
      object(times * 1_000, () => 'x'),
    ]),
    of('a schema with a pattern of many parts', (times) => [
      {
        workflow: complete(1),
        input_schema: {
          type: 'object',
          properties: { a: { type: 'string', pattern: `^${'(a|b)?'.repeat(times * 100)}$` } },
        },
      },
      { a: 'ab'.repeat(times * 100) },
    ]),
    of('a schema of nested choices', (times) => {
      let [schema, payload]: [object, object] = [{ type: 'object' }, {}];
      for (let level = 0; level < times * 12; level++) {
        schema = {
          anyOf: [
            { type: 'object', properties: { a: schema }, required: ['b'] },
            { type: 'object', properties: { a: schema } },
          ],
        };
        payload = { a: payload };
        if (JSON.stringify(schema).length > 100_000) break;
      }
      return [{ workflow: complete(1), input_schema: schema }, payload];
    }),
    {
      name: 'a text in YAML',
      run: async (times) => {
        for (const unit of ['a: 1\n', '- ', '[', '&a *a ', '? ', '"\\u0041', '# ', '|\n ', '{a: '])
          await send('POST', '/automations/check', { text: unit.repeat((times * 60_000) / unit.length) });
      },
    },
  ];
}

function storiesOfTriggers(automations: AutomationsClient, send: Send): Story[] {
  const workflow = graphOf({ id: 'start', kind: 'trigger' });
  const trigger = async (name: string, filter: string, payload: object) => {
    const created = await automations.call<{ id: string }>('POST', '/automations', {
      ...{ name, type: 'trigger', trigger: name, filter, workflow },
    });
    if (created.status >= 500) throw new Error(created.text.slice(0, 300));
    if (created.status !== 201) return;
    await automations.call('POST', `/automations/${created.body.id}/activate`);
    await send('POST', '/events', { name, payload });
    // The event is dispatched before the next one of the app.
    await send('GET', `/automation_runs?automation=${created.body.id}`);
    await automations.call('DELETE', `/automations/${created.body.id}`);
  };
  return [
    { name: 'a long filter', run: (times) => trigger('long', `true${' and true'.repeat(times * 270)}`, {}) },
    {
      name: 'a filter with a pattern',
      run: (times) =>
        trigger('pattern', `$match(a, /${'(a*)*'.repeat(times * 400)}b/)`, { a: 'a'.repeat(times * 5_000) }),
    },
    {
      name: 'an event of many members',
      run: (times) => trigger('members', '$count($keys($)) > 1', object(times * 5_000)),
    },
    {
      name: 'a schedule of many parts',
      run: async (times) => {
        for (const schedule of [
          `${'0,'.repeat(times * 20)}1 * * * *`,
          '*/1,'.repeat(times * 10),
          `${'0-59/1,'.repeat(times * 6)}5 0 29 2 *`,
        ])
          await automations.call('POST', '/automations', { name: 'cron', type: 'scheduled', schedule, workflow });
      },
    },
  ];
}

function storiesOfMetadata(send: Send, source: string, agent: string, user: string): Story[] {
  const large = (times: number) => object(times * 4_000, (index) => `v${index}`);
  return [
    {
      name: 'metadata of many members, read, listed and replaced',
      run: async (times) => {
        const file = await send('POST', '/files', {
          filename: 'a',
          content_type: 'text/plain',
          data: '',
          provider_metadata: large(times),
        });
        await send('GET', `/files/${file.id}`);
        await send('GET', '/files?page_size=5');
        await send('PATCH', `/files/${file.id}`, { provider_metadata: { a: 1 } });
        await send('DELETE', `/files/${file.id}`);
      },
    },
    {
      name: 'metadata of a source and of its documents, searched with filters',
      run: async (times) => {
        await send('PATCH', `/knowledge_sources/${source}`, { metadata: large(times) });
        await send('GET', '/knowledge_sources?include=statistics');
        await send('POST', `/knowledge_sources/${source}/ingest`, {
          content: { data: 'Heron.' },
          metadata: object(times * 200, (index) => `v${index}`),
        });
        const filter = { and: Array.from({ length: times * 20 }, (_, index) => ({ [`k${index}`]: `v${index}` })) };
        for (const body of [
          { query: 'heron', filter },
          { query: 'heron', filter: object(times * 25) },
          { query: '"a '.repeat(times * 300) },
          { query: 'a* '.repeat(times * 300) },
          { query: `${'é'.repeat(times * 1_000)}` },
        ])
          await send('POST', `/knowledge_sources/${source}/search`, body);
      },
    },
    {
      name: 'a long entry, and many in one batch',
      run: async (times) => {
        await send('PUT', '/kv/long', { user, value: '\u0001'.repeat(times * 10_000) });
        await send('GET', `/kv/long?user=${user}`);
        const operations = Array.from({ length: times * 25 }, (_, index) => ({
          op: 'set',
          key: `k${index}`,
          value: 'x'.repeat(500),
        }));
        await send('POST', '/kv_batch', { user, operations });
        await send('GET', `/kv_entries?user=${user}&limit=100`);
      },
    },
    {
      name: 'a message and the metadata of its thread',
      run: async (times) => {
        const thread = await send('POST', '/threads', { agent, metadata: large(times) });
        await send('POST', `/threads/${thread.id}/messages`, { role: 'user', content: '# a\n'.repeat(times * 5_000) });
        await send('GET', `/threads/${thread.id}`);
        await send('GET', `/threads?page_size=5`);
        await send('DELETE', `/threads/${thread.id}`);
      },
    },
  ];
}
