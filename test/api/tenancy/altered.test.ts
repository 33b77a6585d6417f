import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, test } from 'node:test';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { pixel } from '../../support/files.ts';
import { createRandom } from '../../support/rounds.ts';
import { type ApiResponse, sendExactPath, startTestServer } from '../../support/server.ts';

/*
 * Ids, credentials, cursors and signed URLs, each with one bit changed: none of them opens anything.
 *   ALTERED_ONE_OF=1 ALTERED_SEED=1 node test/run.ts test/api/tenancy/altered.test.ts
 */
const oneOf = Number(process.env.ALTERED_ONE_OF ?? 8);
const seed = Number(process.env.ALTERED_SEED ?? randomInt(2 ** 31));
const random = createRandom(seed);

const server = await startTestServer();
after(() => server.close());
const { api, provision, baseUrl } = server;
const app = await provision.app();
const user = await provision.user(app);
const key = app.secretKey;
const post = async <T>(path: string, body: object): Promise<T> => {
  const made = await api<T>('POST', `/api/v1${path}`, { key, body });
  assert.ok(made.status < 300, made.text);
  return made.body;
};

/** Every text that differs from this one in a bit, as far as a URL or a header can carry it; or one in so many of them. */
function alterations(text: string): string[] {
  const found: string[] = [];
  for (let at = 0; at < text.length; at++)
    for (let bit = 0; bit < 7; bit++) {
      const altered = String.fromCharCode(text.charCodeAt(at) ^ (1 << bit));
      if (/[\w.~-]/.test(altered)) found.push(text.slice(0, at) + altered + text.slice(at + 1));
    }
  const first = Math.floor(random() * oneOf);
  return found.filter((_, place) => place % oneOf === first);
}

async function opensNothing(
  what: string,
  text: string,
  send: (altered: string) => Promise<ApiResponse<unknown>>,
  statuses: number[],
): Promise<number> {
  const whole = await send(text);
  assert.ok(whole.status < 300, `${what}: ${whole.status} ${whole.text}`);
  const altered = alterations(text);
  assert.ok(
    altered.length > text.length / oneOf,
    `${what}: ${altered.length} alterations of ${text.length} characters`,
  );
  for (const each of altered) {
    const { status } = await send(each);
    assert.ok(statuses.includes(status), `${what}: ${each} is ${status}; repeat with ALTERED_SEED=${seed}`);
  }
  return altered.length;
}

test('a credential, capability, cursor or id with one changed bit is rejected', async (context) => {
  const file = await post<{ id: string; url: string; share_url: string }>('/files', {
    ...{ filename: 'a.png', content_type: 'image/png', data: pixel.toString('base64'), share: true, user: user.id },
  });
  const link = await post<{ url: string }>('/files/upload_urls', {
    ...{ filename: 'b.txt', content_type: 'text/plain', user: user.id },
  });
  const agent = await post<{ id: string }>('/agents', { name: 'Agent', user: user.id });
  const installation = await post<{ inbound_url: string }>('/installations', {
    agent: agent.id,
    kind: 'webhook/inbound',
  });
  const source = await post<{ id: string }>('/knowledge_sources', { type: 'knowledge/documents', user: user.id });
  const client = new AutomationsClient(server, app);
  const automation = await client.createAutomation({
    workflow: graphOf({ id: 'a', kind: 'trigger', on_success: 'b' }, { id: 'b', kind: 'complete', result: {} }),
  });
  const run = await client.invoke(automation.id);
  await client.waitForEnd(run.id);
  const journal = await api<{ after_cursor: string }>('GET', `/api/v1/automation_runs/${run.id}/journal?limit=1`, {
    key,
  });

  const get = (path: string, options = {}) => sendExactPath<unknown>(baseUrl, 'GET', path, options);
  /** The URL with one parameter replaced. */
  const within = (url: string, name: string) => {
    const { pathname, searchParams } = new URL(url);
    const text = searchParams.get(name) ?? '';
    const path = (altered: string) => {
      const others = [...searchParams].map(([each, value]) => `${each}=${each === name ? altered : value}`);
      return `${pathname}?${others.join('&')}`;
    };
    return { text, path };
  };
  const signature = within(file.url, 'signature');
  const expiry = within(file.url, 'expires');
  const share = within(file.share_url, 'token');
  const upload = within(
    link.url,
    [...new URL(link.url).searchParams.keys()].find((name) => /sig|token/.test(name)) ?? '',
  );
  const inbound = new URL(installation.inbound_url).pathname;
  let sent = 0;
  const me = (token: string) => get('/api/v1/users/me', { token });
  sent += await opensNothing('an access token', user.token, me, [401]);
  sent += await opensNothing('a secret key', key, (each) => get('/api/v1/kv', { key: each }), [401]);
  const developer = { 'x-app': app.app.id };
  const asDeveloper = (token: string) => get('/api/v1/kv', { token, headers: developer });
  sent += await opensNothing('a developer token', app.developerToken, asDeveloper, [401]);
  sent += await opensNothing('a signature', signature.text, (each) => get(signature.path(each)), [401, 403, 404]);
  sent += await opensNothing('an expiry', expiry.text, (each) => get(expiry.path(each)), [401, 403, 404, 422]);
  sent += await opensNothing('a capability', share.text, (each) => get(share.path(each)), [404]);
  const put = (each: string) =>
    sendExactPath<unknown>(baseUrl, 'PUT', upload.path(each), { headers: { 'content-type': 'text/plain' }, body: 'a' });
  // The link works once, so the whole one comes last.
  for (const each of alterations(upload.text)) {
    const { status } = await put(each);
    assert.ok([401, 403, 404].includes(status), `an upload link: ${each} is ${status}; ALTERED_SEED=${seed}`);
    sent += 1;
  }
  const token = inbound.split('/').at(-1) ?? '';
  const hook = (each: string) => api('POST', inbound.replace(token, each), { body: { text: 'Hello.' } });
  sent += await opensNothing('an inbound URL', token, hook, [404]);
  const page = (each: string) => get(`/api/v1/automation_runs/${run.id}/journal?after_cursor=${each}`, { key });
  sent += await opensNothing('a cursor', journal.body.after_cursor, page, [400, 422]);
  const ids = [`files/${file.id}`, `agents/${agent.id}`, `knowledge_sources/${source.id}`, `automation_runs/${run.id}`];
  for (const id of [...ids, `users/${user.id}`, `automations/${automation.id}`]) {
    const [kind = '', own = ''] = id.split('/');
    sent += await opensNothing(id, own, (each) => get(`/api/v1/${kind}/${each}`, { key }), [404]);
  }
  context.diagnostic(`${sent} altered texts`);
});
