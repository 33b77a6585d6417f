import assert from 'node:assert/strict';
import { after, mock, test } from 'node:test';
import { sendRaw } from '../../support/raw-request.ts';
import { sendExactPath, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/*
 * What a proxy and this server could read differently, what a cache could keep for another caller, and what a line of the
 * log or a header could be made to say.
 */
const server = await startTestServer({ logLevel: 'debug' });
after(() => server.close());
const { api, provision } = server;
const app = await provision.app();
const user = await provision.user(app);

const key = `x-api-key: ${app.secretKey}`;
const body = JSON.stringify({ user: user.id, value: 'x' });
/** Sends one request line with headers and a body, and returns the status of each response on the connection. */
async function statusesOf(head: string[], content = ''): Promise<number[]> {
  const text = await sendRaw(server.baseUrl, `${head.join('\r\n')}\r\n\r\n${content}`);
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}
const put = (name: string) => [`PUT /api/v1/kv/${name} HTTP/1.1`, 'host: a', key, 'content-type: application/json'];
const smuggled = `PUT /api/v1/kv/smuggled HTTP/1.1\r\nhost: a\r\n${key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`;
const chunked = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;

test('a body that two readers could end at different bytes is 400, and nothing behind it is a request', async () => {
  const cases: [string, string[], string][] = [
    ['CL.TE', ['content-length: 6', 'transfer-encoding: chunked'], `0\r\n\r\n${smuggled}`],
    ['TE.CL', ['transfer-encoding: chunked', 'content-length: 4'], `${chunked}${smuggled}`],
    ['two lengths', ['content-length: 0', `content-length: ${body.length}`], body + smuggled],
    ['lengths in one header', [`content-length: ${body.length}, 0`], body + smuggled],
    ['a length with a sign', [`content-length: +${body.length}`], body + smuggled],
    ['a negative length', ['content-length: -1'], body + smuggled],
    ['a length in hex', ['content-length: 0x10'], body + smuggled],
    ['TE.TE', ['transfer-encoding: chunked', 'transfer-encoding: identity'], chunked + smuggled],
    ['an unknown coding', ['transfer-encoding: xchunked'], chunked + smuggled],
    ['chunked not last', ['transfer-encoding: chunked, gzip'], chunked + smuggled],
    ['a space before the colon', ['transfer-encoding : chunked'], chunked + smuggled],
    ['a folded header', ['transfer-encoding:', ' chunked'], chunked + smuggled],
    ['a header without a colon', ['transfer-encoding'], smuggled],
    ['a chunk size with a sign', ['transfer-encoding: chunked'], `+${chunked}${smuggled}`],
    ['a chunk size too large', ['transfer-encoding: chunked'], `fffffffffffffffff\r\n${body}${smuggled}`],
    ['a chunk longer than it says', ['transfer-encoding: chunked'], `1\r\n${body}\r\n0\r\n\r\n${smuggled}`],
    ['a bare line feed', [`x-a: b\ncontent-length: ${body.length}`], body + smuggled],
    ['a bare carriage return', [`x-a: b\rtransfer-encoding: chunked`], chunked + smuggled],
    ['NUL in a header', ['x-a: b\0c', `content-length: ${body.length}`], body + smuggled],
  ];
  for (const [name, headers, content] of cases) {
    const statuses = await statusesOf([...put('outer'), ...headers], content);
    assert.deepEqual([name, statuses.at(-1)], [name, 400]);
    assert.ok(statuses.length <= 2, `${name}: ${statuses}`);
    const { status } = await api('GET', `/api/v1/kv/smuggled?user=${user.id}`, { key: app.secretKey });
    assert.equal(status, 404, `${name}: the request behind the body was taken`);
  }
  const plain = await statusesOf([...put('outer'), `content-length: ${body.length}`], body + smuggled);
  assert.deepEqual(plain, [200, 200]);
});

test('a header that identifies the caller or the server may occur only once', async () => {
  const other = await provision.user(app);
  const get = ['GET /api/v1/users/me HTTP/1.1', 'connection: close'];
  const bearer = (token: string) => `authorization: Bearer ${token}`;
  assert.deepEqual(await statusesOf([...get, 'host: a', bearer(user.token)]), [200]);
  const twice: [string[], number][] = [
    [['host: a', bearer(user.token), bearer(other.token)], 401],
    [['host: a', bearer(user.token), bearer(user.token)], 401],
    [['host: a', key, 'x-api-key: sk_other'], 401],
    [['host: a', key, `x-archastro-api-key: ${app.publishableKey}`], 401],
    [['host: a', 'host: b', bearer(user.token)], 400],
    [['host: a, b', bearer(user.token)], 400],
    [['host: a', 'host: a', bearer(user.token)], 400],
  ];
  for (const [headers, wanted] of twice)
    assert.deepEqual([headers, await statusesOf([...get, ...headers])], [headers, [wanted]]);
  assert.deepEqual(await statusesOf([...get, bearer(user.token)]), [400], 'no host');
  const typed = [...put('typed').filter((line) => !line.startsWith('content-type')), 'connection: close'];
  const types = ['content-type: application/json', 'content-type: text/plain', `content-length: ${body.length}`];
  assert.deepEqual(await statusesOf([...typed, ...types], body), [415]);
});

test('a request for a whole URL or another scheme reaches the same routes, with the same rights', async () => {
  const lines: [string, number[]][] = [
    [`GET ${server.baseUrl}/api/v1/users/me HTTP/1.1`, [401]],
    ['GET http://other.example/protected/api/v1/developer/apps HTTP/1.1', [401]],
    ['GET //api/v1/users/me HTTP/1.1', [404]],
    ['GET /api/v1/../../protected/api/v1/developer/apps HTTP/1.1', [404]],
    ['GET /api/v1/users%2fme HTTP/1.1', [404]],
    // The connection ends without a response.
    ['CONNECT 127.0.0.1:22 HTTP/1.1', []],
    ['TRACE /api/v1/users/me HTTP/1.1', [405]],
  ];
  for (const [line, wanted] of lines) {
    assert.deepEqual([line, await statusesOf([line, 'host: a', 'connection: close'])], [line, wanted]);
  }
});

test('a response that depends on a credential is not cacheable, and none depends on another host or scheme', async () => {
  const file = await api<{ id: string; url: string }>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename: 'a.txt', content_type: 'text/plain', data: 'YQ==', user: user.id },
  });
  const paths = ['/api/v1/users/me', `/api/v1/files/${file.body.id}`, '/api/v1/kv', '/api/v1/nowhere'];
  for (const path of paths)
    for (const options of [{ token: user.token }, { key: app.secretKey }, {}]) {
      const { headers } = await api('GET', path, options);
      assert.equal(headers.get('cache-control'), 'no-store', path);
    }
  const poison = {
    ...{ 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'javascript', 'x-forwarded-prefix': '/evil' },
    ...{ 'x-original-url': '/healthz', 'x-rewrite-url': '/healthz', 'x-http-method-override': 'DELETE' },
    ...{ forwarded: 'host=evil.example;proto=javascript', 'x-host': 'evil.example' },
  };
  const { status, text } = await api('GET', `/api/v1/files/${file.body.id}`, { key: app.secretKey, headers: poison });
  assert.equal(status, 200);
  assert.doesNotMatch(text, /evil|javascript/);
  for (const path of ['/docs', '/console/', '/openapi.json', '/healthz', '/.well-known/oauth-protected-resource/mcp']) {
    const found = await api('GET', path, { headers: poison });
    assert.doesNotMatch(found.text + JSON.stringify([...found.headers]), /evil\.example/, path);
  }
});

test('a response that a shared cache may store is the same for every caller', async () => {
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const shared = await api<{ share_url: string }>('POST', '/api/v1/files', {
    key: app.secretKey,
    body: { filename: 'a.png', content_type: 'image/png', data: png, user: user.id, share: true },
  });
  const { pathname, search } = new URL(shared.body.share_url);
  const responses = await Promise.all(
    [{}, { token: user.token }, { key: app.secretKey }, { headers: { origin: 'https://evil.example' } }].map(
      (options) => api('GET', pathname + search, options),
    ),
  );
  for (const { status, headers, bytes } of responses) {
    assert.equal(status, 200);
    assert.match(headers.get('cache-control') ?? '', /max-age=3600/);
    assert.equal(bytes.toString('base64'), png);
    assert.equal(headers.get('set-cookie'), null);
  }
  // Another origin may get another header, which a cache must not mix up.
  const [plain, , , crossed] = responses.map(({ headers }) => headers);
  const same = plain?.get('access-control-allow-origin') === crossed?.get('access-control-allow-origin');
  assert.ok(same || /\borigin\b/i.test(plain?.get('vary') ?? ''), 'vary: origin');
  // Failures of such URLs are kept by no cache.
  const gone = await api('GET', `${pathname}${search}A`);
  assert.deepEqual([gone.status, gone.headers.get('cache-control')], [404, 'no-store']);
});

test('no name, type or id that a client sends ends a header or a line of the log', async () => {
  const lines: string[] = [];
  const write = mock.method(process.stderr, 'write', (chunk: string) => {
    lines.push(chunk);
    return true;
  });
  const forged = '{"level":"fatal","msg":"forged"}';
  const breaks = ['\r\n', '\n', '\r', '\u2028', '\u0085', '\x1b[31m', '\u202e'];
  try {
    for (const [index, each] of breaks.entries()) {
      const filename = `a${each}x-injected: yes${each}${each}${forged}.txt`;
      const made = await api<{ id: string; url: string }>('POST', '/api/v1/files', {
        key: app.secretKey,
        body: { filename, content_type: 'text/plain', data: 'YQ==', user: user.id },
      });
      if (made.status === 201) {
        const { pathname, search } = new URL(made.body.url);
        const found = await api('GET', pathname + search);
        assert.equal(found.status, 200);
        assert.equal(found.headers.get('x-injected'), null);
        assert.match(found.headers.get('content-disposition') ?? '', /^[\x20-\x7e]+$/);
      } else assert.equal(made.status, 422);
      const type = await api('POST', '/api/v1/files', {
        key: app.secretKey,
        body: { filename: 'a', content_type: `text/plain${each}x-injected: yes`, data: 'YQ==', user: user.id },
      });
      assert.equal(type.status, 422);
      const escaped = encodeURIComponent(`${each}${forged}`);
      for (const path of [`/api/v1/${escaped}`, `/api/v1/files/${escaped}`, `/api/v1/kv/${escaped}?user=${escaped}`])
        await sendExactPath(server.baseUrl, 'GET', path, {
          key: app.secretKey,
          headers: { 'user-agent': forged, 'x-request-id': `${forged}${index}`, referer: forged },
        });
    }
    const last = 'the-last-line';
    await api('GET', '/api/v1/users/me', { headers: { 'x-request-id': last } });
    await until(() => lines.some((line) => line.includes(last)));
  } finally {
    write.mock.restore();
  }
  const written = lines.join('').split('\n').filter(Boolean);
  assert.ok(written.length > breaks.length * 4);
  for (const line of written) {
    const entry = JSON.parse(line) as { level: string; msg: string; requestId?: string };
    assert.notEqual(entry.msg, 'forged', line);
    assert.doesNotMatch(entry.requestId ?? '', /forged/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters would command a terminal.
    assert.doesNotMatch(line, /[\x00-\x1f\x7f\u0085\u2028\u202e]/, 'a control character');
  }
});
