import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type ErrorBody, startTestServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
let key: string;

before(async () => {
  server = await startTestServer();
  key = (await server.provision.app()).secretKey;
});
after(() => server.close());

const strict = { prefer: 'respond-async, handling=strict' };

test('a response names the query parameters that its route does not have', async () => {
  for (const [path, names] of [
    ['/api/v1/users?serch=a', 'serch'],
    ['/api/v1/users?search=a&page=1', null],
    ['/api/v1/kv?usr=usr_1&key=a&key2[]=b', 'usr, key2'],
    ['/api/v1/knowledge_documents?source=cso_1&source[]=cso_2&%F0%9F%A6%8A=1', '%F0%9F%A6%8A'],
    ['/api/v1/users/me?%0d%0ax-own:1=1', '%0D%0Ax-own%3A1'],
    [
      `/api/v1/users?${Array.from({ length: 30 }, (_, at) => `a${at}=1`).join('&')}`,
      'a0, a1, a2, a3, a4, a5, a6, a7, a8, a9',
    ],
  ] as const) {
    const { headers } = await server.api('GET', path, { key });
    assert.equal(headers.get('x-unknown-parameters'), names, path);
  }
});

test('a request that prefers strict handling is refused for parameters that its route does not have', async () => {
  const refused = await server.api<ErrorBody>('GET', '/api/v1/users?serch=a&page=1&own=b', { key, headers: strict });
  assert.equal(refused.status, 422);
  assert.deepEqual(refused.body.error.fields, [
    { field: 'serch', message: 'is not a known parameter of this request; did you mean search?' },
    { field: 'own', message: 'is not a known parameter of this request' },
  ]);
  const known = await server.api('GET', '/api/v1/users?search=a&page=1', { key, headers: strict });
  assert.equal(known.status, 200);
  const lenient = await server.api('GET', '/api/v1/users?serch=a', { key, headers: { prefer: 'handling=lenient' } });
  assert.equal(lenient.status, 200);
});
