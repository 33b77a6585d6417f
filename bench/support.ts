import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readConfig } from '../src/config.ts';
import { openDatabase } from '../src/db/database.ts';
import { createLogger } from '../src/log.ts';
import { createServer } from '../src/server.ts';
import { createServices } from '../src/services.ts';
import { Provisioner } from '../test/support/provisioner.ts';

type Ingestion = { id: string; status: string; error?: unknown };

/** A whole server on its own embedded PostgreSQL, in this process, with an app, an org and calls as its secret key. */
export async function startBenchServer(env: Record<string, string> = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), 'quarry-bench-'));
  const config = readConfig({ PORT: '0', QUARRY_DATA_DIR: dataDir, ...env });
  const services = await createServices(config, createLogger('warn'));
  const server = await createServer(services);
  const baseUrl = await server.listen();
  services.setReady();
  await services.startWorkers(server.work);
  const db = openDatabase(services.target, { poolSize: 2, applicationName: 'bench' });
  const provision = new Provisioner(db, services.secrets, services.clock);
  const app = await provision.app();
  const org = await provision.org(app);

  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(`${baseUrl}${path}`, {
      method,
      headers: { 'x-api-key': app.secretKey, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answers ${response.status}: ${text}`);
    return JSON.parse(text) as T;
  }

  return {
    db,
    services,
    post: <T = Ingestion>(path: string, body: unknown) => call<T>('POST', path, body),
    makeSource: async () =>
      (await call<{ id: string }>('POST', '/api/v1/knowledge_sources', { type: 'knowledge/documents', org: org.id }))
        .id,
    /** Waits until the ingestion is over; throws when it failed. */
    async finished(ingestion: Ingestion): Promise<void> {
      let now = ingestion;
      while (now.status !== 'succeeded') {
        if (now.status === 'failed') throw new Error(`The ingestion failed: ${JSON.stringify(now.error)}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
        now = await call<Ingestion>('GET', `/api/v1/knowledge_ingestions/${ingestion.id}`);
      }
    },
    async close(): Promise<void> {
      await db.end();
      await server.close();
      await services.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
