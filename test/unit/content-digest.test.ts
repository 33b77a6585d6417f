import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { parseContentDigest } from '../../src/http/body/content-digest.ts';

const sha256 = createHash('sha256').update('hello').digest();
const sha512 = createHash('sha512').update('hello').digest();

test('both algorithms are read, and others beside them passed over', () => {
  assert.deepEqual(parseContentDigest(`sha-256=:${sha256.toString('base64')}:`), { sha256 });
  assert.deepEqual(
    parseContentDigest(`md5=:aGVsbG8=:, sha-512=:${sha512.toString('base64')}:,sha-256=:${sha256.toString('base64')}:`),
    { sha256, sha512 },
  );
});

test('an invalid conditional header is ignored', () => {
  for (const header of [
    '',
    'sha-256',
    `sha-256=${sha256.toString('base64')}`,
    `sha-256=:${sha256.toString('hex')}:`,
    'sha-256=:aGVsbG8=:',
    'md5=:aGVsbG8=:',
    `sha-512=:${sha256.toString('base64')}:`,
    `sha-256=:${sha256.toString('base64')}: trailing`,
  ])
    assert.equal(parseContentDigest(header), undefined, header);
});
