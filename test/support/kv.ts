import type { TestScope, TestUser } from './provisioner.ts';
import { type ApiOptions, type ApiResponse, sendExactPath, startTestServer } from './server.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests read responses of every shape.
type Api = (method: string, path: string, options?: ApiOptions) => Promise<ApiResponse<any>>;

/** A test server for keys in paths, with users whose e-mail and name can be found in lists of entries. */
export async function startKv(env: Record<string, string> = {}) {
  const server = await startTestServer({ env });
  const { baseUrl, db, provision } = server;
  const api: Api = (method, path, options) => sendExactPath(baseUrl, method, path, options);

  return {
    ...server,
    api,

    async createUser(scope: TestScope, email: string | null = null, name: string | null = null): Promise<TestUser> {
      const user = await provision.user(scope);
      await db`update users set email = ${email}, name = ${name} where id = ${user.uuid}`;
      return user;
    },
  };
}

/** The options of a request by the developer of this scope's app. */
export function asDeveloper(app: TestScope & { developerToken: string; sandbox?: { id: string } }): ApiOptions {
  const headers = { 'x-app': app.app.id, ...(app.sandbox === undefined ? {} : { 'x-sandbox': app.sandbox.id }) };
  return { token: app.developerToken, headers };
}
