import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from '../src/boot/server.ts';
import { createServices } from '../src/boot/services.ts';
import { readConfig } from '../src/config/config.ts';
import { openDatabase } from '../src/db/database.ts';
import { createLogger } from '../src/lib/log.ts';
import { Provisioner, type TestApp } from '../test/support/provisioner.ts';

type Ingestion = { id: string; status: string; error?: unknown; stats?: Record<string, unknown> };

type Started = { app: TestApp; orgId: string };

/**
 * Starts a whole server with its own embedded PostgreSQL in this process, with an app, an org and calls as its secret
 * key. A directory passed as `keptDir` is kept, and the next server on it has the same app.
 */
export async function startBenchServer(env: Record<string, string> = {}, keptDir?: string) {
  const dataDir = keptDir ?? mkdtempSync(join(tmpdir(), 'quarry-bench-'));
  const config = readConfig({ PORT: '0', QUARRY_DATA_DIR: dataDir, ...env });
  const services = await createServices(config, createLogger('warn'));
  const server = await createServer(services);
  const baseUrl = await server.listen();
  services.setReady();
  await services.startWorkers(server.work);
  const db = openDatabase(services.target, { poolSize: 2, applicationName: 'bench' });
  const provision = new Provisioner(db, services.secrets, services.clock);
  const startedFile = join(dataDir, 'bench.json');
  const started: Started = existsSync(startedFile)
    ? JSON.parse(readFileSync(startedFile, 'utf8'))
    : await provision.app().then(async (app) => ({ app, orgId: (await provision.org(app)).id }));
  writeFileSync(startedFile, JSON.stringify(started));
  const { app, orgId } = started;

  async function call<T>(method: string, path: string, body?: unknown, key = app.secretKey): Promise<T> {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answers ${response.status}: ${text}`);
    return JSON.parse(text) as T;
  }

  return {
    db,
    services,
    baseUrl,
    app,
    provision,
    post: <T = Ingestion>(path: string, body: unknown, key?: string) => call<T>('POST', path, body, key),
    /** Creates another app and returns its secret key. */
    otherApp: async () => (await provision.app()).secretKey,
    makeSource: async (type = 'knowledge/documents', payload: Record<string, unknown> = {}) =>
      (await call<{ id: string }>('POST', '/api/v1/knowledge_sources', { type, payload, org: orgId })).id,
    /** Waits until the ingestion has ended. Throws if it failed. */
    async finished(ingestion: Ingestion, everyMs = 20): Promise<Ingestion> {
      let now = ingestion;
      while (now.status !== 'succeeded') {
        if (now.status === 'failed') throw new Error(`The ingestion failed: ${JSON.stringify(now.error)}`);
        await new Promise((resolve) => setTimeout(resolve, everyMs));
        now = await call<Ingestion>('GET', `/api/v1/knowledge_ingestions/${ingestion.id}`);
      }
      return now;
    },
    /**
     * Makes the server learn every source of the app again in its current state, as happens when it has grown.
     * Returns the models.
     */
    async learnAll(): Promise<{ version: number; dimensions: number; wordCount: number; chunkCount: number }[]> {
      for (;;) {
        await db`update knowledge_models set next_ordinal = 0, chunk_count = 0, trained_at = now() - interval '1 hour' where lease_holder is null`;
        await server.work.tasks.learn_sources?.({ appId: app.app.uuid }, {
          signal: new AbortController().signal,
          waitOutside: <T>(wait: () => Promise<T>) => wait(),
        } as never);
        const models = await db<
          { version: number; dimensions: number; wordCount: number; chunkCount: number; current: boolean }[]
        >`select m.version, m.dimensions, m.word_count, m.chunk_count, m.next_ordinal = i.next_ordinal as current
          from knowledge_models m join knowledge_indexes i on i.app_id = m.app_id and i.source_id = m.source_id`;
        if (models.length > 0 && models.every((model) => model.current && model.chunkCount > 0))
          return models.map(({ current: _current, ...model }) => model);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    },
    /** Waits until all extractions have ended. Throws if one failed. */
    async ended(extractions: { id: string; state: string }[]): Promise<void> {
      for (let now of extractions)
        while (now.state !== 'done') {
          if (now.state === 'failed') throw new Error(`An extraction failed: ${JSON.stringify(now)}`);
          await new Promise((resolve) => setTimeout(resolve, 20));
          now = await call<{ id: string; state: string }>('GET', `/api/v1/extractions/${now.id}`);
        }
    },
    async close(): Promise<void> {
      await db.end();
      await server.close();
      await services.close();
      if (keptDir === undefined) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
