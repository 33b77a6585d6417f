import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '../../src/clock.ts';
import { type Database, openDatabase, production } from '../../src/db/database.ts';
import { Metrics } from '../../src/http/metrics.ts';
import { createHttpServer } from '../../src/http/server.ts';
import { formatId, newUuid } from '../../src/ids.ts';
import { rewriteKvUrl } from '../../src/kv/paths.ts';
import { registerKvRoutes } from '../../src/kv/routes.ts';
import { createKvService, type KvLimits } from '../../src/kv/service.ts';
import { createLogger } from '../../src/log.ts';
import { mintAccessToken } from '../../src/tenancy/access-tokens.ts';
import type { Scope } from '../../src/tenancy/caller.ts';
import { Credentials } from '../../src/tenancy/credentials.ts';
import { digest, newCredential, Secrets } from '../../src/tenancy/secrets.ts';
import { createTestDatabase } from './database.ts';

export type Headers = Record<string, string>;
export type Answer = {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  body: Json;
};
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
export type Json = any;

export type TestApp = Scope & { secretKey: Headers; publishableKey: Headers; developer: Headers };
export type TestUser = { id: string; userId: string; token: string; headers: Headers };

/** Key-value storage on a port of its own, with tenants made straight in the database. */
export async function startKv(limits: Partial<KvLimits> = {}) {
  const database = await createTestDatabase();
  const db: Database = openDatabase(database.target, { poolSize: 10, applicationName: 'quarry-test' });
  const secrets = new Secrets('0123456789abcdefghijklmnopqrstuvwxyz');
  const credentials = new Credentials({ db, secrets, clock: systemClock });
  const { fastify, api } = await createHttpServer({
    log: createLogger('error'),
    credentials,
    metrics: new Metrics(),
    bodyBytesMax: 48 * 1024 * 1024,
    corsOrigins: ['*'],
    trustProxy: [],
    rewriteUrl: rewriteKvUrl,
  });
  const kv = createKvService({
    db,
    limits: { keyBytesMax: 1024, valueBytesMax: 1024 * 1024, userBytesMax: 64 * 1024 * 1024, ...limits },
  });
  registerKvRoutes(api, { kv });
  await fastify.listen({ host: '127.0.0.1', port: 0 });
  const { port } = fastify.server.address() as AddressInfo;

  return {
    db,
    kv,
    port,
    baseUrl: `http://127.0.0.1:${port}`,

    async createApp(): Promise<TestApp> {
      const appId = newUuid();
      const developerId = newUuid();
      const developerToken = newCredential('dvt');
      await db`insert into developers (id, name) values (${developerId}, 'Developer')`;
      await db`insert into developer_tokens (digest, id, developer_id)
        values (${digest(developerToken)}, ${newUuid()}, ${developerId})`;
      await db`insert into apps (id, developer_id, name, capability_key)
        values (${appId}, ${developerId}, 'App', ${Buffer.alloc(0)})`;
      return createScope({ appId, sandboxId: production }, developerToken);
    },

    /** A sandbox of the app, with credentials of its own. */
    createSandbox: (app: TestApp) =>
      createScope({ appId: app.appId, sandboxId: newUuid() }, (app.developer.authorization ?? '').slice(7)),

    async createUser(app: Scope, email?: string, name?: string): Promise<TestUser> {
      const userId = newUuid();
      await db`insert into users (app_id, id, sandbox_id, email, name)
        values (${app.appId}, ${userId}, ${app.sandboxId}, ${email ?? null}, ${name ?? null})`;
      const token = await mintAccessToken(secrets, { ...app, userId }, new Date());
      return { id: formatId('user', userId), userId, token, headers: { authorization: `Bearer ${token}` } };
    },

    /** Sends the path exactly as given, which fetch would tidy. */
    send(method: string, path: string, headers: Headers, body?: unknown): Promise<Answer> {
      const payload = body === undefined ? undefined : JSON.stringify(body);
      const length = payload === undefined ? {} : { 'content-length': Buffer.byteLength(payload) };
      return new Promise((resolve, reject) => {
        const outgoing = request(
          {
            host: '127.0.0.1',
            port,
            method,
            path,
            headers: { 'content-type': 'application/json', ...length, ...headers },
          },
          (incoming) => {
            const chunks: Buffer[] = [];
            incoming.on('data', (chunk) => chunks.push(chunk));
            incoming.on('end', () => {
              const text = Buffer.concat(chunks).toString();
              const parsed = text === '' ? undefined : JSON.parse(text);
              resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text, body: parsed });
            });
          },
        );
        outgoing.on('error', reject);
        outgoing.end(payload);
      });
    },

    async stop() {
      await fastify.close();
      await db.end({ timeout: 5 });
      await database.drop();
    },
  };

  async function createScope(scope: Scope, developerToken: string): Promise<TestApp> {
    const { appId, sandboxId } = scope;
    const [secret, publishable] = [newCredential('sk'), newCredential('pk')];
    await db`insert into sandboxes (app_id, id, name) values (${appId}, ${sandboxId}, 'Sandbox')`;
    await db`insert into api_keys (app_id, id, sandbox_id, type, digest, hint) values
      (${appId}, ${newUuid()}, ${sandboxId}, 'secret', ${digest(secret)}, 'sk_'),
      (${appId}, ${newUuid()}, ${sandboxId}, 'publishable', ${digest(publishable)}, 'pk_')`;
    return {
      ...scope,
      secretKey: { 'x-api-key': secret },
      publishableKey: { 'x-api-key': publishable },
      developer: {
        authorization: `Bearer ${developerToken}`,
        'x-app': formatId('app', appId),
        ...(sandboxId === production ? {} : { 'x-sandbox': formatId('sandbox', sandboxId) }),
      },
    };
  }
}

export type TestKv = Awaited<ReturnType<typeof startKv>>;
