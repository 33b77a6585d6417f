import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Worker } from 'node:worker_threads';
import { zipSync } from 'fflate';

/**
 * The hostile tenant, which its parent starts in the background: a real attacker works on other machines, so here it
 * must not take processor time from the server. It continues its attack until it is ended. `{ base, key, attack }` come
 * as an argument in JSON.
 */
const { base, key, attack } = JSON.parse(process.argv[2] ?? '') as { base: string; key: string; attack: AttackName };

export type AttackName = keyof typeof attacks;
type Answer = { id: string; access_token: string };

async function send(method: string, path: string, body?: unknown, credential?: Record<string, string>) {
  const response = await fetch(`${base}/api/v1${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...(credential ?? { 'x-api-key': key }) },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
}

async function create<T = Answer>(path: string, body: unknown): Promise<T> {
  const { status, text } = await send('POST', path, body);
  if (status >= 300) throw new Error(`POST ${path} returns ${status}: ${text}`);
  return JSON.parse(text) as T;
}

async function automation(workflow: unknown, more: Record<string, unknown> = {}): Promise<string> {
  const { id } = await create('/automations', { name: 'hostile', type: 'invoked', workflow, ...more });
  await create(`/automations/${id}/activate`, {});
  return id;
}

/** This many clients, each of which sends its next request as soon as it has a response. */
function sendContinuously(clients: number, ask: (client: number, round: number) => Promise<unknown>): void {
  for (let client = 0; client < clients; client++)
    void (async () => {
      for (let round = 0; ; round++) await ask(client, round).catch(() => {});
    })();
}

const graph = (...nodes: Record<string, unknown>[]) => ({
  kind: 'WorkflowGraph',
  version: 1,
  start_node: nodes[0]?.id,
  nodes,
});
const retry = { max_attempts: 100, initial_seconds: 0 };
const catastrophic = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!';

const attacks = {
  /** 60 concurrent invocations of a for_each with a pattern that never ends, each with a hundred retries. */
  async expressions() {
    const node = { id: 'one', kind: 'transform', value: `{{$match("${catastrophic}", /^(?=a)(a+)+$/)}}`, retry };
    const id = await automation(
      graph({ id: 'each', kind: 'for_each', items: '[1..1000]', concurrency: 50, node, retry }),
    );
    sendContinuously(60, async () => {
      await create(`/automations/${id}/invoke`, {});
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    });
  },

  /** An automation that starts itself ten times, repeatedly. */
  async 'run trees'() {
    const node = { id: 'one', kind: 'run_automation', automation: 'self', retry };
    const each = { id: 'each', kind: 'for_each', items: '[1..10]', concurrency: 10, node };
    const id = await automation(graph(each), { lookup_key: 'self' });
    sendContinuously(4, async () => {
      await create(`/automations/${id}/invoke`, {});
      await new Promise((resolve) => setTimeout(resolve, 2_000));
    });
  },

  /** Runs that write a thousand values each, without a pause: ten are started every five seconds, and each takes seconds. */
  async 'long runs'() {
    const { id: user } = await create('/users', { email: 'hostile@example.test', name: 'Hostile' });
    const node = { id: 'one', kind: 'kv_set', user, key: '{{$item}}', value: 'seen' };
    const id = await automation(graph({ id: 'each', kind: 'for_each', items: '$.items', concurrency: 10, node }));
    const items = Array.from({ length: 1_000 }, (_, n) => `item-${n}`);
    sendContinuously(10, async () => {
      await create(`/automations/${id}/invoke`, { payload: { items } });
      await new Promise((resolve) => setTimeout(resolve, 5_000));
    });
  },

  /** Twelve concurrent extractions of a workbook of 3 KB with one full row and one full column. */
  async xlsx() {
    const cell = '<c><v>1</v></c>';
    const link = (id: string, type: string, target: string) =>
      `<Relationships><Relationship Id="${id}" Type="http://x/relationships/${type}" Target="${target}"/></Relationships>`;
    const files = {
      '[Content_Types].xml': '<Types/>',
      '_rels/.rels': link('rId1', 'officeDocument', 'xl/workbook.xml'),
      'xl/_rels/workbook.xml.rels': link('rId1', 'worksheet', 'worksheets/sheet1.xml'),
      'xl/workbook.xml': '<workbook xmlns:r="r"><sheets><sheet name="S" r:id="rId1"/></sheets></workbook>',
      'xl/worksheets/sheet1.xml': `<worksheet><sheetData><row>${cell.repeat(15_000)}</row>${`<row>${cell}</row>`.repeat(15_000)}</sheetData></worksheet>`,
    };
    const bytes = zipSync(Object.fromEntries(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)])));
    const { id } = await create('/files', {
      ...{ filename: 'bomb.xlsx', content_type: 'application/octet-stream' },
      data: Buffer.from(bytes).toString('base64'),
    });
    sendContinuously(12, () => send('POST', '/extractions', { file: id, destination_kind: 'storage' }));
  },

  /** Twelve concurrent lists of a user's 60 MiB of entries. */
  async 'key-value lists'() {
    const user = await create('/users', { email: 'hostile@example.test', name: 'Hostile' });
    const { access_token } = await create(`/users/${user.id}/tokens`, {});
    const value = 'x'.repeat(1_000_000);
    for (let n = 0; n < 60; n++) await send('PUT', `/kv/key-${n}`, { value, user: user.id });
    sendContinuously(12, () => send('GET', '/kv', undefined, { authorization: `Bearer ${access_token}` }));
  },

  /** Eight concurrent bodies of 40 MB. */
  async 'large bodies'() {
    const body = JSON.stringify({ filename: 'x', content_type: 'text/plain', data: 'QUFB'.repeat(10_000_000) });
    sendContinuously(8, () => send('POST', '/files', body));
  },

  /** Thirty pages and thirty requests of nodes, concurrently, to a host that does not reply. */
  async 'hanging links'() {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const id = await automation(graph({ id: 'fetch', kind: 'http_request', method: 'GET', url }));
    sendContinuously(30, async (client, round) => {
      await send('POST', '/extractions', {
        url: `${url}/${client}/${round}`,
        mode: 'link',
        destination_kind: 'storage',
      });
      await create(`/automations/${id}/invoke`, {});
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    });
  },

  /**
   * No attack: two computing threads at the priority of parsers and expressions. This is the minimum cost of any
   * attack.
   */
  async 'bare threads'() {
    for (let n = 0; n < 2; n++) new Worker('for (;;);', { eval: true });
  },

  /**
   * No attack: the bodies and lists of the attacks, exchanged with a bare server that neither reads nor creates them.
   */
  async 'bare transfers'() {
    const bare = `
      require('node:os').setPriority(0, 0);
      const piece = Buffer.alloc(1_000_000, 'x');
      process.once('disconnect', () => process.exit());
      require('node:http').createServer((request, response) => {
        request.resume().on('end', () => {
          if (request.method === 'POST') return response.end();
          let left = 60;
          const more = () => { while (left-- > 0) if (!response.write(piece)) return response.once('drain', more); response.end(); };
          more();
        });
      }).listen(0, '127.0.0.1', function () { process.send(this.address().port); });`;
    const stdio = ['ignore', 'inherit', 'inherit', 'ipc'] as const;
    const child = spawn(process.execPath, ['-e', bare], { detached: true, stdio: [...stdio] });
    const [port] = await once(child, 'message');
    const body = 'QUFB'.repeat(10_000_000);
    const url = `http://127.0.0.1:${port}`;
    sendContinuously(4, async () => (await fetch(url, { method: 'POST', body })).text());
    sendContinuously(6, async () => (await fetch(url)).text());
  },

  /** Sixteen concurrent payloads with a schema check that never ends. */
  async 'input schemas'() {
    const input_schema = { type: 'object', properties: { a: { type: 'string', pattern: '^(?=a)(a+)+$' } } };
    const id = await automation(graph({ id: 'a', kind: 'trigger' }), { input_schema });
    sendContinuously(16, () => send('POST', `/automations/${id}/invoke`, { payload: { a: catastrophic } }));
  },
};

process.once('disconnect', () => process.exit());
await attacks[attack]();
process.send?.('started');
