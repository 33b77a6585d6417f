import assert from 'node:assert/strict';
import { type ApiResponse, sendRequest } from './request.ts';

/** How a client reaches the server, which may be a different process after each kill. */
export type Connection = {
  baseUrl: string;
  key: string;
  /** Whether the app has left this server since the connection was chosen. */
  hasMoved?: () => Promise<boolean>;
};

/** What clients were told, and what may have happened without a response. */
export class Ledger {
  /** For each key, the values that a read may return. `null` means no entry. */
  readonly entries = new Map<string, Set<string | null>>();
  readonly pairs = new Map<string, Set<string | null>>();
  readonly files = new Map<string, string>();
  readonly ingestions = new Set<string>();
  readonly runs = new Set<string>();
  readonly extractions = new Set<string>();
  /** How many of each kind have been checked before, in the order of their acknowledgement. */
  readonly checked = { files: 0, extractions: 0, ingestions: 0, runs: 0 };
  counted = 0;
  uncertainCounts = 0;
  acknowledged = 0;
  retries = 0;
  /** What the server said at the last retry. */
  lastRetry = '';

  /** The current names of keys that had others before. */
  readonly #names = new Map<string, string>();

  /**
   * Records a write that is about to be sent, to `name`. Call `acknowledge` when it is acknowledged: a read then returns
   * its value. An earlier write without a response may still take effect, as the database may receive it later. So the
   * next write goes to a key with another name, whose value is certain again.
   */
  expect(entries: Map<string, Set<string | null>>, key: string, value: string) {
    const name = this.#names.get(key) ?? key;
    const possible = entries.get(name) ?? new Set([null]);
    const isCertain = possible.size === 1;
    entries.set(name, possible.add(value));
    const acknowledge = () => {
      if (isCertain) entries.set(name, new Set([value]));
      else this.#names.set(key, `${name}-again`);
    };
    return { name, acknowledge };
  }
}

/** Sends one request, or a few that belong together. `n` counts them. */
export type Actor = (n: number) => Promise<void>;

type Fixture = { user: string; source: string; automation: string };

/** The user, source and automation that the actors work on. */
export async function createFixture({ baseUrl, key }: Connection): Promise<Fixture> {
  const create = async (path: string, body: unknown) => {
    const response = await sendRequest<{ id: string }>(baseUrl, 'POST', `/api/v1${path}`, { key, body });
    assert.equal(response.status, 201, response.text);
    return response.body.id;
  };
  const user = await create('/users', { email: 'crash@example.test', name: 'Crash' });
  const org = await create('/orgs', { name: 'Crash' });
  const source = await create('/knowledge_sources', { type: 'knowledge/documents', org });
  const automation = await create('/automations', {
    ...{ name: 'Crash', type: 'invoked' },
    workflow: {
      ...{ kind: 'WorkflowGraph', version: 1, start_node: 'nap' },
      nodes: [
        { id: 'nap', kind: 'wait', seconds: 0.1, on_success: 'note' },
        { id: 'note', kind: 'kv_set', user, key: 'run/{{$run.id}}', value: 'done', on_success: 'end' },
        { id: 'end', kind: 'complete', result: {} },
      ],
    },
  });
  const activated = await sendRequest(baseUrl, 'POST', `/api/v1/automations/${automation}/activate`, { key });
  assert.equal(activated.status, 200, activated.text);
  return { user, source, automation };
}

/**
 * The response of a request that took effect, or undefined if that is unknown. A failure without a response, or with
 * a 503 as documented, counts as a retry, and so does what a server says of an app that has left it. Any other failure
 * is an error.
 */
export async function sendCounted<T>(
  { baseUrl, key, hasMoved }: Connection,
  ledger: Ledger,
  request: { method: string; path: string; wanted: number; body?: unknown; headers?: Record<string, string> },
): Promise<ApiResponse<T> | undefined> {
  const { method, path, wanted, body, headers = {} } = request;
  const options = { key, headers, ...(body === undefined ? {} : { body }) };
  const response = await sendRequest<T>(baseUrl, method, `/api/v1${path}`, options).catch(() => undefined);
  const isTold = response?.status === 503 && response.headers.get('retry-after') !== null;
  if (response === undefined || isTold || (response.status !== wanted && (await hasMoved?.()))) {
    ledger.retries += 1;
    ledger.lastRetry = `${method} ${path}: ${response?.text ?? 'no response'}`;
    await new Promise((resolve) => setTimeout(resolve, retryMs));
    return undefined;
  }
  assert.equal(response.status, wanted, `${method} ${path}: ${response.text}`);
  ledger.acknowledged += 1;
  return response;
}

/**
 * Starts one client of each kind, and those of `more`. Each sends one request after another until `isOver`, and pauses
 * for `pauseMs` between two: every write must also be checked in the end.
 */
export function startActors(
  connection: () => Connection,
  fixture: Fixture,
  ledger: Ledger,
  isOver: () => boolean,
  { more = [], pauseMs = pauseMsDefault }: { more?: readonly Actor[]; pauseMs?: number } = {},
) {
  const { user, source, automation } = fixture;

  async function send<T>(method: string, path: string, body: unknown, wanted: number): Promise<T | undefined> {
    return (await sendCounted<T>(connection(), ledger, { method, path, body, wanted }))?.body;
  }

  const actors: Actor[] = [
    async (n) => {
      const value = `value ${n}`;
      const { name, acknowledge } = ledger.expect(ledger.entries, `entry-${n % 7}`, value);
      if (await send('PUT', `/kv/${name}`, { user, value }, 200)) acknowledge();
    },
    async (n) => {
      const value = `value ${n}`;
      const { name, acknowledge } = ledger.expect(ledger.pairs, `pair-${n % 5}`, value);
      const operations = ['a', 'b'].map((half) => ({ op: 'put', key: `${name}/${half}`, value }));
      if (await send('POST', '/kv_batch', { user, operations }, 200)) acknowledge();
    },
    async () => {
      ledger.uncertainCounts += 1;
      if ((await send('POST', '/kv_increment', { user, key: 'counter' }, 200)) === undefined) return;
      ledger.uncertainCounts -= 1;
      ledger.counted += 1;
    },
    async (n) => {
      const data = `File ${n}, ${'with some words. '.repeat(n % 50)}`;
      const upload = { filename: `${n}.md`, content_type: 'text/markdown', data: Buffer.from(data).toString('base64') };
      const file = await send<{ id: string }>('POST', '/files', upload, 201);
      if (file === undefined) return;
      ledger.files.set(file.id, data);
      const extraction = { file: file.id, destination_kind: 'storage' };
      const extracted = await send<{ id: string }>('POST', '/extractions', extraction, 201);
      if (extracted !== undefined) ledger.extractions.add(extracted.id);
    },
    async (n) => {
      const item = { title: `Title ${n}`, content: { data: `# Crash ${n}\n\n${'Text to be found. '.repeat(60)}` } };
      const ingestion = await send<{ id: string }>('POST', `/knowledge_sources/${source}/ingest`, item, 201);
      if (ingestion !== undefined) ledger.ingestions.add(ingestion.id);
    },
    async (n) => {
      const run = await send<{ id: string }>('POST', `/automations/${automation}/invoke`, { payload: { n } }, 200);
      if (run !== undefined) ledger.runs.add(run.id);
    },
  ];
  return Promise.all(
    [...actors, ...more].map(async (act) => {
      for (let n = 0; !isOver(); n++) {
        await act(n);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }),
  );
}

const retryMs = 20;
/** Leaves processor time to a server that starts again. */
const pauseMsDefault = 20;

/**
 * Asserts that everything in the ledger is present and complete, and that every job ends. All entries are read; of the
 * rest, `'new'` reads only what no earlier check has read, so that many checks of a growing ledger take linear time.
 */
export async function checkLedger(
  { baseUrl, key }: Connection,
  { user }: Fixture,
  ledger: Ledger,
  which: 'all' | 'new' = 'all',
): Promise<void> {
  const get = <T>(path: string) => sendRequest<T>(baseUrl, 'GET', `/api/v1${path}`, { key });
  const readValue = async (name: string) => {
    const response = await get<{ value: string }>(`/kv/${encodeURIComponent(name)}?user=${user}`);
    return response.status === 404 ? null : response.body.value;
  };
  const checkValue = async (name: string, possible: Set<string | null>) => {
    const value = await readValue(name);
    assert.ok(possible.has(value), `${name} is ${value}, and may be ${[...possible].join(' or ')}`);
    return value;
  };
  for (const [name, possible] of ledger.entries) await checkValue(name, possible);
  for (const [name, possible] of ledger.pairs) {
    const half = await checkValue(`${name}/a`, possible);
    assert.equal(await checkValue(`${name}/b`, possible), half, 'Half of a batch was kept.');
  }
  const counter = Number((await readValue('counter')) ?? 0);
  assert.ok(counter >= ledger.counted && counter <= ledger.counted + ledger.uncertainCounts, `counter ${counter}`);

  const ends = async (path: string, wanted: string) => {
    for (;;) {
      const { status, body, text } = await get<{ status?: string; state?: string }>(path);
      assert.equal(status, 200, text);
      const state = body.status ?? body.state ?? '';
      if (state === wanted) return;
      assert.ok(!['failed', 'cancelled'].includes(state), text);
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  };
  const check = async <T>(kind: keyof Ledger['checked'], items: Iterable<T>, read: (item: T) => Promise<void>) => {
    const acknowledged = [...items];
    await readSideBySide(acknowledged.slice(which === 'new' ? ledger.checked[kind] : 0), read);
    ledger.checked[kind] = acknowledged.length;
  };
  await check('files', ledger.files, async ([id, data]) => {
    const { pathname, search } = new URL((await get<{ url: string }>(`/files/${id}`)).body.url);
    assert.equal((await sendRequest(baseUrl, 'GET', pathname + search)).bytes.toString(), data);
  });
  await check('extractions', ledger.extractions, (id) => ends(`/extractions/${id}`, 'done'));
  await check('ingestions', ledger.ingestions, (id) => ends(`/knowledge_ingestions/${id}`, 'succeeded'));
  await check('runs', ledger.runs, async (id) => {
    await ends(`/automation_runs/${id}`, 'completed');
    assert.equal(await readValue(`run/${id}`), 'done');
  });
}

const readersMax = 4;

async function readSideBySide<T>(items: T[], read: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  await Promise.all(
    Array.from({ length: readersMax }, async () => {
      for (const item of rest) await read(item);
    }),
  );
}
