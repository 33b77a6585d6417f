import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { after, test } from 'node:test';
import { accessTokenSeconds } from '../../../src/tenancy/access-tokens.ts';
import { type ApiOptions, type ErrorBody, startTestServer } from '../../support/server.ts';

/*
 * JWT confusion, for the tokens that this server issues; those of other issuers are in external-identity.test.ts, and
 * each spelling of one token in credential-lives.test.ts.
 */
const server = await startTestServer();
after(() => server.close());
const { api, provision } = server;
const app = await provision.app();
const user = await provision.user(app);
const [head = '', claims = '', signature = ''] = user.token.split('.');

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const decode = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;
const hmac = (key: string | Buffer, text: string, hash = 'sha256') =>
  createHmac(hash, key).update(text).digest('base64url');

async function refused(token: string, why: string, options: ApiOptions = {}): Promise<void> {
  const { status, body } = await api<ErrorBody>('GET', '/api/v1/users/me', { token, ...options });
  assert.deepEqual([status, body.error.code], [401, 'invalid_credentials'], `${why}: ${token}`);
}

test('the token from which the others are derived is accepted', async () => {
  assert.equal((await api('GET', '/api/v1/users/me', { token: user.token })).status, 200);
  assert.deepEqual(decode(head), { alg: 'HS256', typ: 'JWT' });
});

test('a header that names no algorithm, another one or none that exists is refused', async () => {
  for (const alg of [
    'none',
    'None',
    'NONE',
    'nOnE',
    '',
    'HS512',
    'HS384',
    'RS256',
    'ES256',
    'EdDSA',
    null,
    0,
    ['HS256'],
  ])
    for (const proof of ['', signature])
      await refused(`${encode({ alg, typ: 'JWT' })}.${claims}.${proof}`, `alg ${alg}`);
});

test('a signature by a key that is public, empty or in the token itself is refused', async () => {
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = pair.publicKey.export({ format: 'jwk' });
  const rsa = `${encode({ alg: 'RS256', typ: 'JWT', jwk })}.${claims}`;
  await refused(`${rsa}.${sign('sha256', Buffer.from(rsa), pair.privateKey).toString('base64url')}`, 'jwk');
  const pem = pair.publicKey.export({ format: 'pem', type: 'spki' }).toString();
  for (const key of ['', 'secret', pem, app.publishableKey, app.secretKey, app.app.id, Buffer.alloc(32)])
    await refused(`${head}.${claims}.${hmac(key, `${head}.${claims}`)}`, 'a key that is known');
  for (const hash of ['sha1', 'sha384', 'sha512'])
    await refused(`${head}.${claims}.${hmac('', `${head}.${claims}`, hash)}`, hash);
});

test('a key id, a key URL or a critical extension in the header has no effect', async () => {
  const kids = ['../../../dev/null', '/dev/null', "' union select 'a", '0', 'access-token', '__proto__'];
  const headers = [
    ...kids.map((kid) => ({ kid })),
    { jku: `${server.baseUrl}/healthz`, kid: '1' },
    { x5u: `${server.baseUrl}/healthz` },
    { jwk: { kty: 'oct', k: '' } },
    { crit: ['b64'], b64: false },
    { zip: 'DEF' },
  ];
  for (const extra of headers)
    for (const key of ['', Buffer.alloc(32)]) {
      const text = `${encode({ alg: 'HS256', typ: 'JWT', ...extra })}.${claims}`;
      await refused(`${text}.${hmac(key, text)}`, JSON.stringify(extra));
    }
});

test('claims cannot be changed, moved to another app or renewed under the old signature', async () => {
  const other = await provision.app();
  const now = Math.floor(Date.now() / 1000);
  const changes: object[] = [
    { sub: (await provision.user(app)).id },
    { app: other.app.id },
    { exp: now + accessTokenSeconds * 10 },
    { epo: 1 },
    { iss: 'someone' },
    { aud: 'quarry' },
    { role: 'admin' },
  ];
  for (const change of changes)
    await refused(`${head}.${encode({ ...decode(claims), ...change })}.${signature}`, 'claims');
  // A later duplicate of a member wins in many parsers.
  const doubled = Buffer.from(Buffer.from(claims, 'base64url').toString().replace(/}$/, `,"app":"${other.app.id}"}`));
  await refused(`${head}.${doubled.toString('base64url')}.${signature}`, 'a member twice');
});

test('a token has three parts of base64url in one spelling, and one for another purpose is refused', async () => {
  const wrong = [
    `${head}.${claims}`,
    `${head}.${claims}.`,
    `${head}..${signature}`,
    `.${claims}.${signature}`,
    `${user.token}.${signature}`,
    `${head}.${claims}=.${signature}`,
    `${user.token}=`,
    `${head}.${claims}.${signature}%00`,
    // Encrypted tokens have five parts.
    `${encode({ alg: 'dir', enc: 'A256GCM' })}....`,
    JSON.stringify({ payload: claims, protected: head, signature }),
  ];
  for (const token of wrong) await refused(token, 'shape');
  await refused(
    `${head}.${claims}.${server.services.secrets.sign('session', `${head}.${claims}`).toString('base64url')}`,
    'purpose',
  );
  await refused(
    `${head}.${claims}.${server.services.secrets.sign('signed-url', `${head}.${claims}`).toString('base64url')}`,
    'purpose',
  );
});
