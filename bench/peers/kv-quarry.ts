import { Agent } from 'undici';
import { startOwnServer } from './own-server.ts';
import { type KvPeer, ownVersion } from './row.ts';

/** The whole server with its defaults: credentials, rate limits, quotas and the audit log are on. */
export async function startQuarryKv(): Promise<KvPeer> {
  const { origin, headers, pids, post, stop } = await startOwnServer();
  const { id: user } = await post<{ id: string }>('/users', { email: 'bench@example.test', name: 'Bench' });
  const agent = new Agent({ connections: 64 });
  type Entry = { value: string };
  const call = async (method: 'GET' | 'PUT' | 'POST', path: string, body?: object) => {
    const response = await agent.request({
      ...{ origin, method, headers, path: `/api/v1${path}` },
      ...(body === undefined ? {} : { body: JSON.stringify({ ...body, user }) }),
    });
    if (response.statusCode === 404) return void (await response.body.dump());
    if (response.statusCode >= 300) throw new Error(await response.body.text());
    return (await response.body.json()) as Entry;
  };
  return {
    program: 'Quarry',
    version: ownVersion,
    guarantees: 'fsync before the response; apps, sandboxes and users separated, with quotas; HTTP',
    pids,
    get: async (key) => (await call('GET', `/kv/${key}?user=${user}`))?.value,
    put: (key, value) => call('PUT', `/kv/${key}`, { value }),
    increment: (key) => call('POST', '/kv_increment', { key }),
    close: async () => {
      await agent.close();
      await stop();
    },
  };
}
