import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseQuery, readTokens } from '../../src/content/terms.ts';
import fc from '../support/fast-check.ts';

const terms = (text: string) => readTokens(text, 'english').map(({ term }) => term);

test('words are folded and stemmed; identifiers give their parts and the whole', () => {
  assert.deepEqual(terms('Crêpes RUNNING naïvely'), ['crepe', 'run', 'naiv']);
  assert.deepEqual(terms('getUserName'), ['getusername', 'get', 'user', 'name']);
  assert.deepEqual(terms('max_pages'), ['max_pages', 'max', 'page']);
  assert.deepEqual(terms("the dog's C++"), ['the', 'dog', 'c++']);
  // Pairs of characters, and the words 検索 and する.
  assert.deepEqual(terms('検索する'), ['検索', '検索', '索す', 'する', 'する']);
  assert.deepEqual(
    readTokens('Straße', 'german').map(({ term }) => term),
    ['strass'],
  );
});

test('queries have phrases, prefixes and word counts; stop words count only alone', () => {
  const query = parseQuery('the cats "red fox" retriev* cat', ['english']);
  assert.deepEqual(
    query.terms.map(({ label, count }) => [label, count]),
    [
      ['cat', 2],
      ['red', 1],
      ['fox', 1],
    ],
  );
  assert.deepEqual(
    query.phrases.map((phrase) => phrase.map(({ label }) => label)),
    [['red', 'fox']],
  );
  assert.deepEqual(query.prefixes, ['retriev']);
  assert.deepEqual(
    parseQuery('to be', ['english']).terms.map(({ label }) => label),
    ['to', 'be'],
  );
  assert.deepEqual(parseQuery('an "unclosed quote', ['english']).phrases, []);
});

test('any text can be read, and its positions never go back', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      let before = 0;
      for (const token of readTokens(text, 'english')) {
        assert.notEqual(token.term, '');
        assert.ok(token.position >= before);
        before = token.position;
      }
    }),
  );
});
