import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namesOf, readSources, type Source } from '../support/source.ts';

/*
 * Timing: how long a comparison takes must not say how much of a secret was right. Secrets are compared by
 * timingSafeEqual, or looked up in the database by their SHA-256, whose timing says nothing about the secret.
 */
const sources = readSources('src');

const provers = ({ text }: Source) => /\bcreateHmac\(/.test(text);
const comparesInConstantTime = ({ text }: Source) => /\btimingSafeEqual\(/.test(text);

test('every file that computes a MAC compares it in constant time', () => {
  const wrong = sources.filter((source) => provers(source) && !comparesInConstantTime(source));
  assert.deepEqual(namesOf(wrong), []);

  assert.ok(sources.filter(provers).length > 2);
});

const secretWords = String.raw`(?:\w*(?:signature|mac|csrf|proof|apiKey|secret|passwordHash)|digest|credential)`;
const comparison = new RegExp(
  String.raw`\b${secretWords}(?:\.toString\([^)]*\))? ?[!=]==? ?(?!undefined|null|''|'[a-z_-]+'|\d|=)\w|\w ?[!=]==? ?\w+\.${secretWords}\b|\b${secretWords}\.equals\(`,
);
const comparesSecrets = ({ text }: Source) => comparison.test(text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, ''));

/** What looks like a comparison of secrets and is none. */
const harmless: Record<string, string> = {
  'src/http/server.ts': 'compares two headers of one request',
  'src/cli/client/ledger.ts': 'compares digests of records, which are not secrets',
  'src/ledger/head.ts': 'compares digests of records, which are not secrets',
  'src/ledger/verify.ts': 'compares digests of records, which are not secrets',
};

test('no secret is compared with an operator that stops at the first difference', () => {
  const wrong = sources.filter(comparesSecrets);
  assert.deepEqual(namesOf(wrong), Object.keys(harmless).sort(), 'Use timingSafeEqual, or look up its digest.');

  assert.ok(comparesSecrets({ name: 'a.ts', text: 'if (signature === expected) return;' }));
  assert.ok(comparesSecrets({ name: 'a.ts', text: 'if (given !== row.secret) throw no();' }));
  assert.ok(comparesSecrets({ name: 'a.ts', text: 'return mac.equals(other);' }));
  assert.ok(!comparesSecrets({ name: 'a.ts', text: 'if (signature === undefined) return;' }));
});
