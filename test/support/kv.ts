import { request } from 'node:http';
import { formatId } from '../../src/ids.ts';
import type { TestScope } from './provisioner.ts';
import { startTestServer } from './server.ts';

export type Headers = Record<string, string>;
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
type Json = any;
type Answer = {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  text: string;
  body: Json;
};

type KvTestScope = { scope: TestScope; secretKey: Headers; publishableKey: Headers; developer: Headers };
type KvTestUser = { id: string; userId: string; token: string; headers: Headers };

/** The whole server, and tenants in the words of key-value tests: each caller is the headers that it sends. */
export async function startKv(env: Record<string, string> = {}) {
  const server = await startTestServer({ env });
  const { db, provision, baseUrl } = server;

  const createUser = async ({ scope }: KvTestScope, email?: string, name?: string): Promise<KvTestUser> => {
    const user = await provision.user(scope);
    await db`update users set email = ${email ?? null}, name = ${name ?? null} where id = ${user.uuid}`;
    return { id: user.id, userId: user.uuid, token: user.token, headers: { authorization: `Bearer ${user.token}` } };
  };

  const headersOf = (scope: TestScope, developer: Headers): KvTestScope => ({
    scope,
    secretKey: { 'x-api-key': scope.secretKey },
    publishableKey: { 'x-api-key': scope.publishableKey },
    developer,
  });

  return {
    db,
    baseUrl,
    createUser,

    async createApp(): Promise<KvTestScope> {
      const app = await provision.app();
      return headersOf(app, {
        authorization: `Bearer ${app.developerToken}`,
        'x-app': formatId('app', app.app.uuid),
      });
    },

    async createSandbox(app: KvTestScope): Promise<KvTestScope> {
      const sandbox = await provision.sandbox(app.scope as Parameters<typeof provision.sandbox>[0]);
      return headersOf(sandbox, { ...app.developer, 'x-sandbox': sandbox.sandbox.id });
    },

    /** Sends the path exactly as given, which fetch would tidy. */
    send(method: string, path: string, headers: Headers, body?: unknown): Promise<Answer> {
      const payload = body === undefined ? undefined : JSON.stringify(body);
      const length = payload === undefined ? {} : { 'content-length': String(Buffer.byteLength(payload)) };
      const { hostname, port } = new URL(baseUrl);
      const options = { hostname, port, method, path };
      return new Promise((resolve, reject) => {
        const outgoing = request(
          { ...options, headers: { 'content-type': 'application/json', ...length, ...headers } },
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

    stop: () => server.close(),
  };
}
