import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';
import { type Actor, type Connection, type Ledger, sendCounted } from './crash-ledger.ts';
import { htmlPage, startSite } from './fixture-site.ts';
import type { Json, TestIngestion } from './knowledge.ts';
import { sendRequest } from './request.ts';
import { metadataOf, offsetType, tus } from './uploads.ts';
import { WebhookReceiver } from './webhook-receiver.ts';

/** Work of one kind in the mixed load. */
type Area = {
  act: Actor;
  /** After the last kill, asserts that everything has ended as promised. */
  finish(): Promise<void>;
  close(): Promise<void>;
};

export const areaNames = ['uploads', 'crawls', 'webhooks', 'training'] as const;
type AreaName = (typeof areaNames)[number];

/** Creates further kinds of work for a mixed load, with their fixtures. */
export async function openAreas(connection: () => Connection, ledger: Ledger, names: readonly AreaName[]) {
  const areas = await Promise.all(names.map((name) => openArea[name](connection, ledger)));
  return {
    actors: areas.map(({ act }) => act),
    finish: () => Promise.all(areas.map((area) => area.finish())),
    close: () => Promise.all(areas.map((area) => area.close())),
  };
}

const openArea: Record<AreaName, (connection: () => Connection, ledger: Ledger) => Promise<Area>> = {
  /**
   * Resumable uploads in three pieces, each of which may be cut: what the server reports as stored is not sent again.
   */
  async uploads(connection, ledger) {
    const pieceBytes = 40_000;
    return {
      async act(n) {
        const data = `Upload ${n} `.padEnd(3 * pieceBytes - 7, `and its text ${n} `);
        const created = await sendCounted<{ id: string; file: string }>(connection(), ledger, {
          ...{ method: 'POST', path: '/uploads', wanted: 201 },
          headers: {
            ...tus,
            'upload-length': String(data.length),
            'upload-metadata': metadataOf({ filename: `${n}.bin`, content_type: 'application/octet-stream' }),
          },
        });
        if (created === undefined) return;
        const path = `/uploads/${created.body.id}`;
        for (let offset = 0; offset < data.length; ) {
          const appended = await sendCounted(connection(), ledger, {
            ...{ method: 'PATCH', path, wanted: 204, body: data.slice(offset, offset + pieceBytes) },
            headers: { ...tus, ...offsetType, 'upload-offset': String(offset) },
          });
          const response = appended ?? (await headOf(path));
          offset = Number(response.headers.get('upload-offset'));
        }
        ledger.files.set(created.body.file, data);
      },
      finish: async () => {},
      close: async () => {},
    };

    async function headOf(path: string) {
      for (;;) {
        const request = { method: 'HEAD', path, wanted: 200, headers: tus };
        const response = await sendCounted(connection(), ledger, request);
        if (response !== undefined) return response;
      }
    }
  },

  /** Pulls of a site: each pull ends, and the source has each page once. */
  async crawls(connection, ledger) {
    const paths = ['/', '/a', '/b', '/c', '/d', '/e'];
    const site = await startSite(Object.fromEntries(paths.map((path) => [path, htmlPage(`Page ${path}`, paths)])));
    const source = await create(connection(), '/knowledge_sources', {
      ...{ type: 'scrape/site', org: await create(connection(), '/orgs', { name: 'Crawls' }) },
      payload: { url: `${site.origin}/` },
    });
    return {
      async act() {
        const pulled = await sendCounted<TestIngestion>(connection(), ledger, {
          ...{ method: 'POST', path: `/knowledge_sources/${source}/ingest`, wanted: 201, body: { pull: true } },
        });
        if (pulled !== undefined) ledger.ingestions.add(pulled.body.id);
        await wait(pauseMs);
      },
      async finish() {
        const found = await read<{ data: { source_url: string }[] }>(
          connection(),
          `/knowledge_documents?source=${source}`,
        );
        const urls = found.data.map(({ source_url: url }) => url).sort();
        assert.deepEqual(
          urls,
          paths.map((path) => site.origin + path),
        );
      },
      close: site.close,
    };
  },

  /** Every event that was acknowledged is delivered at least once. */
  async webhooks(connection, ledger) {
    const receiver = await WebhookReceiver.start();
    await create(connection(), '/webhooks', { url: `${receiver.origin}/hook`, events: ['crash'] });
    const events = new Set<string>();
    return {
      async act(n) {
        const body = { name: 'crash', payload: { n } };
        const emitted = await sendCounted<{ id: string }>(connection(), ledger, {
          ...{ method: 'POST', path: '/events', wanted: 201, body },
        });
        if (emitted !== undefined) events.add(emitted.body.id);
        await wait(pauseMs);
      },
      async finish() {
        const missing = () => {
          const seen = new Set(receiver.messages.map(({ event }) => event.id));
          return [...events].filter((id) => !seen.has(id));
        };
        // The claim of a killed process expires after thirty seconds, and the next check follows within ten.
        for (const end = Date.now() + deliveryMsMax; missing().length > 0 && Date.now() < end; ) await wait(50);
        assert.deepEqual(missing(), [], 'Events were acknowledged and never delivered.');
      },
      close: () => receiver.close(),
    };
  },

  /** A source that grows until its search model is trained repeatedly, while each document is found by its own word. */
  async training(connection, ledger) {
    const org = await create(connection(), '/orgs', { name: 'Training' });
    const source = await create(connection(), '/knowledge_sources', { type: 'knowledge/documents', org });
    const batches: number[] = [];
    const push = async (n: number) => {
      const items = Array.from({ length: batchItems }, (_item, index) => ({
        title: `number${n}x${index}`,
        content: {
          data: `The ${topics[index % topics.length]} of number${n}x${index} lies by the ${topics[n % topics.length]}.`,
        },
      }));
      const path = `/knowledge_sources/${source}/ingest/batch`;
      const body = { items, on_active: 'queue' };
      const pushed = await sendCounted<TestIngestion>(connection(), ledger, {
        method: 'POST',
        path,
        wanted: 201,
        body,
      });
      if (pushed === undefined) return;
      ledger.ingestions.add(pushed.body.id);
      batches.push(n);
    };
    for (let n = 0; n < 3; n++) await push(-1 - n);
    return {
      async act(n) {
        await push(n);
        await wait(10 * pauseMs);
      },
      async finish() {
        for (const n of batches.slice(-5)) {
          const query = `number${n}x7`;
          const found = await search(connection(), source, query);
          assert.equal(found.data[0]?.title, query, JSON.stringify(found.data[0]));
        }
        // A claim of thirty seconds may have to expire, and sources are checked once a minute.
        const isTrained = async () => (await search(connection(), source, 'number1x1')).explain.models !== undefined;
        for (const end = Date.now() + trainingMsMax; !(await isTrained()); await wait(500))
          assert.ok(Date.now() < end, 'The source was never trained.');
      },
      close: async () => {},
    };
  },
};

/** The pause between the requests of work that takes several requests. */
const pauseMs = 50;
const deliveryMsMax = 300_000;
const trainingMsMax = 600_000;
const batchItems = 100;
const topics = ['river', 'mountain', 'harbour', 'garden', 'railway', 'bridge', 'castle'];

type Found = { data: (Json & { title: string })[]; explain: { models?: unknown } };

async function search({ baseUrl, key }: Connection, source: string, query: string): Promise<Found> {
  const path = `/api/v1/knowledge_sources/${source}/search`;
  const found = await sendRequest<Found>(baseUrl, 'POST', path, { key, body: { query, explain: true } });
  assert.equal(found.status, 200, found.text);
  return found.body;
}

async function read<T>({ baseUrl, key }: Connection, path: string): Promise<T> {
  const found = await sendRequest<T>(baseUrl, 'GET', `/api/v1${path}`, { key });
  assert.equal(found.status, 200, found.text);
  return found.body;
}

async function create({ baseUrl, key }: Connection, path: string, body: unknown): Promise<string> {
  const made = await sendRequest<{ id: string }>(baseUrl, 'POST', `/api/v1${path}`, { key, body });
  assert.equal(made.status, 201, made.text);
  return made.body.id;
}
