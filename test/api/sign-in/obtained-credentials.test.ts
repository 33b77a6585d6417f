import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { digest } from '../../../src/tenancy/secrets.ts';
import { AssistantFlow } from '../../support/assistant.ts';
import { EventStream } from '../../support/event-stream.ts';
import { responses, startSite } from '../../support/fixture-site.ts';
import type { TestUser } from '../../support/provisioner.ts';
import { startTestServer } from '../../support/server.ts';
import { startIssuer } from '../../support/token-issuer.ts';
import { until } from '../../support/until.ts';

/*
 * What was obtained with a credential ends with it: every kind of credential, every way in which it ends, and everything
 * that can be obtained with it. What stays is in the table too, with the reason.
 */

const server = await startTestServer({ env: { QUARRY_MCP_OAUTH: 'true', QUARRY_FETCH_ALLOW: '127.0.0.0/8' } });
const { api, provision, baseUrl } = server;
const audience = 'https://quarry.example';
const issuer = await startIssuer(() => new Date(), audience);
const site = await startSite({ '/slow': responses.silent });
after(async () => {
  await server.close();
  await issuer.close();
  await site.close();
});
const app = await provision.app();
const key = app.secretKey;

type Headers = Record<string, string>;
const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` });

/** Something that was obtained. */
type Obtained = { works(): Promise<boolean> };
type Thing = 'upload link' | 'stream' | 'waiting call' | 'personal token' | 'assistant' | 'console session';
type Held = {
  obtain: Partial<Record<Thing, () => Promise<Obtained>>>;
  end(): Promise<unknown>;
};
type Row = { name: string; hold(): Promise<Held>; ends: Thing[]; stays?: Partial<Record<Thing, string>> };

async function post<T>(path: string, headers: Headers, body: object): Promise<T> {
  const made = await api<T & object>('POST', path, { headers, body });
  assert.ok(made.status < 300, `${path}: ${made.text}`);
  return made.body;
}

const linkTo = (url: string): Obtained => ({
  works: async () => {
    const put = await fetch(url, { method: 'PUT', body: 'text', headers: { 'content-type': 'text/plain' } });
    await put.text();
    return put.status === 201;
  },
});

/** A link is used once, so it is tried only after the end. */
async function uploadLink(headers: Headers): Promise<Obtained> {
  const body = { filename: 'a.txt', content_type: 'text/plain' };
  return linkTo((await post<{ url: string }>('/api/v1/files/upload_urls', headers, body)).url);
}

async function openStream(headers: Headers): Promise<Obtained> {
  const stream = await EventStream.open(`${baseUrl}/api/v1/events/stream`, headers);
  assert.equal(stream.response.statusCode, 200);
  stream.response.resume();
  return { works: async () => !stream.ended };
}

async function openWatch(headers: Headers): Promise<Obtained> {
  const stream = await EventStream.open(`${baseUrl}/api/v1/kv_watch`, headers);
  assert.equal(stream.response.statusCode, 200);
  assert.ok(await stream.next());
  stream.response.resume();
  return { works: async () => !stream.ended };
}

const whileSignedIn = (headers: Headers): Obtained => ({
  works: async () => (await api('GET', '/api/v1/users/me', { headers })).status === 200,
});

const createToken = async (headers: Headers) =>
  (await post<{ token: string }>('/api/v1/users/me/tokens', headers, {})).token;

/** A personal token, and one that was created with it. */
async function personalToken(headers: Headers): Promise<Obtained> {
  const first = await createToken(headers);
  const both = [first, await createToken(bearer(first))].map((token) => whileSignedIn(bearer(token)));
  return { works: async () => (await Promise.all(both.map((each) => each.works()))).includes(true) };
}

async function connect(headers: Headers, publishableKey = app.publishableKey) {
  const flow = new AssistantFlow(server, publishableKey, '');
  const clientId = await flow.register();
  const request = await flow.request(flow.parameters(clientId));
  const { redirect_url: back } = await post<{ redirect_url: string }>('/api/v1/assistant_request', headers, {
    request,
    decision: 'allow',
  });
  const { body: tokens } = await flow.exchange(clientId, new URL(back).searchParams.get('code') ?? '');
  return { flow, clientId, tokens };
}

async function assistant(headers: Headers): Promise<Obtained> {
  const { flow, tokens } = await connect(headers);
  return { works: async () => (await flow.call(tokens.access_token)).status === 200 };
}

const ofUser = (headers: Headers) => ({
  'upload link': () => uploadLink(headers),
  stream: () => openWatch(headers),
  'personal token': () => personalToken(headers),
});
const ofPerson = (headers: Headers) => ({ ...ofUser(headers), assistant: () => assistant(headers) });
const ofServer = (headers: Headers) => ({
  'upload link': async () => {
    const org = await provision.org(app);
    const body = { filename: 'a.txt', content_type: 'text/plain', org: org.id };
    return linkTo((await post<{ url: string }>('/api/v1/files/upload_urls', headers, body)).url);
  },
  stream: () => openStream(headers),
});

const createKey = (type: 'secret' | 'publishable') =>
  post<{ id: string; full_key: string }>('/api/v1/keys', { 'x-api-key': key }, { type });
const remove = (path: string) => api('DELETE', `/api/v1/${path}`, { key });
/** Keys expire after days, and what is obtained with them after an hour, so no clock shows this. */
const expire = (fullKey: string) =>
  server.db`update api_keys set expires_at = now() where app_id = ${app.app.uuid} and digest = ${digest(fullKey)}`;
const revokeDeveloper = (token: string) =>
  server.db`update developer_tokens set revoked_at = now() where digest = ${digest(token)}`;

/** A session that begins with the user's password or the app's decision. */
async function startSession(user: TestUser) {
  return post<{ access_token: string; refresh_token: string }>(
    `/api/v1/users/${user.id}/tokens`,
    { 'x-api-key': key },
    {},
  );
}

/** A user of an issuer, whose tokens are sent with this key. */
async function holdExternal(publishableKey: string) {
  const body = { issuer: issuer.issuer, audience, create_users: true };
  const trusted = await api<{ id: string }>('POST', '/api/v1/identity_issuers', { key, body });
  if (trusted.status === 201) issuerPath = `identity_issuers/${trusted.body.id}`;
  const token = await issuer.sign(`user ${++subjects}`);
  return { headers: { 'x-api-key': publishableKey, ...bearer(token) } };
}
let issuerPath = '';
let subjects = 0;

/** An assistant that is connected through a key of its own. */
async function holdAssistant() {
  const made = await createKey('publishable');
  const user = await provision.user(app);
  const { flow, clientId, tokens } = await connect(bearer(user.token), made.full_key);
  const listed = () => api<{ data: { id: string }[] }>('GET', `/api/v1/connected_assistants?user=${user.id}`, { key });
  const call = (name: string, given: object) =>
    flow.call(tokens.access_token, { method: 'tools/call', params: { name, arguments: given } });
  const obtain = {
    assistant: async () => ({
      works: async () =>
        (await listed()).body.data.length > 0 ||
        (await flow.call(tokens.access_token)).status === 200 ||
        (await flow.refresh(clientId, tokens.refresh_token)).status === 200,
    }),
    'upload link': async () => {
      const answer = await call('create_upload_url', { filename: 'a.txt', content_type: 'text/plain' });
      const [url] = /http[^"\\]+upload[^"\\]+/.exec(answer.text) ?? [];
      assert.ok(url, answer.text);
      return linkTo(url);
    },
    'waiting call': async () => {
      let isOver = false;
      const before = site.requestCount('/slow');
      void call('extract_url', { url: `${site.origin}/slow`, wait_seconds: 300 }).finally(() => {
        isOver = true;
      });
      await until(() => isOver || site.requestCount('/slow') > before);
      return { works: async () => !isOver };
    },
  };
  return { made, obtain, listed };
}

const rows: Row[] = [
  {
    name: 'a secret key that is revoked',
    hold: async () => {
      const made = await createKey('secret');
      const headers = { 'x-api-key': made.full_key };
      const user = await provision.user(app);
      const obtain = {
        ...ofServer(headers),
        'personal token': async () => {
          const given = await post<{ token: string }>(`/api/v1/users/${user.id}/tokens`, headers, { type: 'personal' });
          return whileSignedIn(bearer(given.token));
        },
      };
      return { obtain, end: () => remove(`keys/${made.id}`) };
    },
    ends: ['upload link', 'stream'],
    stays: { 'personal token': 'it is the user’s; an app that changes its key signs nobody out' },
  },
  {
    name: 'a developer token that is revoked',
    hold: async () => {
      const own = await provision.app();
      const token = own.developerToken;
      const headers = { ...bearer(token), 'x-app': own.app.id };
      const obtain = {
        stream: () => openStream(headers),
        'console session': async () => {
          const opened = await api('POST', '/console/session', { body: { developer_token: token } });
          const cookie = opened.headers.get('set-cookie')?.split(';')[0] ?? '';
          return { works: async () => (await api('GET', '/console/session', { headers: { cookie } })).status === 200 };
        },
      };
      return { obtain, end: () => revokeDeveloper(token) };
    },
    ends: ['stream', 'console session'],
  },
  {
    name: 'a session that is signed out',
    hold: async () => {
      const session = await startSession(await provision.user(app));
      const end = () =>
        post('/api/v1/auth/logout', { 'x-api-key': app.publishableKey }, { refresh_token: session.refresh_token });
      return { obtain: ofPerson(bearer(session.access_token)), end };
    },
    ends: ['stream'],
    stays: {
      'upload link': 'signing out ends the session, not what the user does with others',
      'personal token': 'it is there to be used without a session',
      assistant: 'it is there to be used without a session',
    },
  },
  {
    name: 'all sessions of a user',
    hold: async () => {
      const user = await provision.user(app);
      const session = await startSession(user);
      const end = () => api('POST', `/api/v1/users/${user.id}/sessions/revoke`, { key });
      return { obtain: ofPerson(bearer(session.access_token)), end };
    },
    ends: ['upload link', 'stream', 'personal token', 'assistant'],
  },
  {
    name: 'a personal token that is revoked',
    hold: async () => {
      const user = await provision.user(app);
      const made = await post<{ id: string; token: string }>('/api/v1/users/me/tokens', bearer(user.token), {});
      return { obtain: ofUser(bearer(made.token)), end: () => remove(`users/${user.id}/tokens/${made.id}`) };
    },
    ends: ['upload link', 'stream', 'personal token'],
  },
  {
    name: 'a token of an issuer that is deleted',
    hold: async () => {
      const { headers } = await holdExternal(app.publishableKey);
      return { obtain: ofPerson(headers), end: () => remove(issuerPath) };
    },
    ends: ['upload link', 'stream', 'personal token', 'assistant'],
  },
  ...(['revoked', 'expired'] as const).flatMap((way): Row[] => {
    const end = (made: { id: string; full_key: string }) =>
      way === 'revoked' ? remove(`keys/${made.id}`) : expire(made.full_key);
    return [
      {
        name: `a token of an issuer whose publishable key is ${way}`,
        hold: async () => {
          const made = await createKey('publishable');
          const { headers } = await holdExternal(made.full_key);
          return { obtain: ofPerson(headers), end: () => end(made) };
        },
        ends: ['upload link', 'stream'],
        stays: { 'personal token': 'it names its app itself', assistant: 'it is connected through another key' },
      },
      {
        name: `an assistant whose publishable key is ${way}`,
        hold: async () => {
          const { made, obtain } = await holdAssistant();
          return { obtain, end: () => end(made) };
        },
        ends: ['assistant', 'upload link', 'waiting call'],
      },
    ];
  }),
  {
    name: 'an assistant that is disconnected',
    hold: async () => {
      const { obtain, listed } = await holdAssistant();
      const end = async () => remove(`connected_assistants/${(await listed()).body.data[0]?.id}`);
      return { obtain, end };
    },
    ends: ['assistant', 'upload link', 'waiting call'],
  },
];

for (const { name, hold, ends, stays = {} } of rows)
  test(`what was obtained ends with ${name}`, async () => {
    const { obtain, end } = await hold();
    const staying = Object.keys(stays) as Thing[];
    assert.deepEqual(Object.keys(obtain).toSorted(), [...ends, ...staying].toSorted(), 'everything is expected');
    const obtained = new Map<Thing, Obtained>();
    for (const [thing, make] of Object.entries(obtain)) {
      obtained.set(thing as Thing, await make());
      if (thing === 'upload link') assert.ok(await (await make()).works(), thing);
      else assert.ok(await obtained.get(thing as Thing)?.works(), thing);
    }
    await end();
    server.services.credentials.forget();
    await server.services.streams.endRevoked();
    for (const thing of ends) await until(async () => !(await obtained.get(thing)?.works()));
    for (const thing of staying) assert.ok(await obtained.get(thing)?.works(), `${thing}: ${stays[thing]}`);
  });
