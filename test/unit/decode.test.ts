import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { FetchError, type FetchErrorCode } from '../../src/content/fetch/errors.ts';
import { bodyText } from '../../src/content/parse/web/body-text.ts';
import { decodeBody } from '../../src/content/parse/web/decode.ts';

async function decode(bytes: Uint8Array, contentEncoding: string, bytesMax = 1024 * 1024, cut = false) {
  return Buffer.from(await decodeBody(bytes, { contentEncoding, bytesMax, cut })).toString();
}

const failsWith = (code: FetchErrorCode) => (error: unknown) => error instanceof FetchError && error.code === code;

test('every content encoding that is asked for is undone', async () => {
  const hello = Buffer.from('hello');
  assert.equal(await decode(hello, ''), 'hello');
  assert.equal(await decode(gzipSync(hello), 'gzip'), 'hello');
  assert.equal(await decode(gzipSync(hello), 'X-Gzip'), 'hello');
  assert.equal(await decode(brotliCompressSync(hello), 'br'), 'hello');
  assert.equal(await decode(zstdCompressSync(hello), 'zstd'), 'hello');
  assert.equal(await decode(deflateSync(hello), 'deflate'), 'hello');
  assert.equal(await decode(deflateRawSync(hello), 'deflate'), 'hello');
  assert.equal(await decode(gzipSync(gzipSync(hello)), 'gzip, gzip'), 'hello');
  await assert.rejects(decode(hello, 'gzip, gzip, gzip'), failsWith('bad_response'));
  await assert.rejects(decode(hello, 'rot13'), failsWith('bad_response'));
});

test('a body ends with its stream, with or without trailing bytes', async () => {
  const encodings: [string, Buffer][] = [
    ['gzip', gzipSync('hello')],
    ['deflate', deflateSync('hello')],
    ['br', brotliCompressSync('hello')],
    ['zstd', zstdCompressSync('hello')],
  ];
  for (const [name, bytes] of encodings) {
    await decode(Buffer.concat([bytes, Buffer.from('xy')]), name).then(
      (text) => assert.equal(text, 'hello', name),
      (error) => assert.ok(failsWith('bad_response')(error), name),
    );
    for (let end = 0; end < bytes.length; end++)
      await decode(bytes.subarray(0, end), name).catch((error) => assert.ok(failsWith('bad_response')(error), name));
  }
  assert.equal(await decode(Buffer.concat([deflateSync('hello'), Buffer.from('xy')]), 'deflate'), 'hello');
  await assert.rejects(decode(Buffer.from([255, 255, 255]), 'deflate'), failsWith('bad_response'));
});

test('a body is bounded without its encoding, and cut where its start is enough', async () => {
  const bomb = gzipSync(Buffer.alloc(50 * 1024 * 1024));
  await assert.rejects(decode(bomb, 'gzip'), failsWith('too_large'));
  assert.equal((await decode(bomb, 'gzip', 1_000, true)).length, 1_000);
  await assert.rejects(decode(Buffer.alloc(2_000), '', 1_000), failsWith('too_large'));
});

test('a body is text by its byte order mark, else by the charset of its type, else as UTF-8', () => {
  const latin = Buffer.from('h\xe9', 'latin1');
  assert.equal(bodyText(latin, 'text/plain; charset=ISO-8859-1'), 'h\u00e9');
  assert.equal(bodyText(latin, 'text/plain; charset=klingon'), 'h\uFFFD');
  assert.equal(bodyText(Buffer.from('h\u00e9'), 'application/json'), 'h\u00e9');
  assert.equal(bodyText(Buffer.from('\uFEFFh\u00e9', 'utf16le'), 'text/plain; charset=utf-8'), 'h\u00e9');
});
