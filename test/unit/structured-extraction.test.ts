import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ResponseFormats } from '../../src/content/models/llm/response-formats.ts';
import { mergeResults } from '../../src/extractions/structure/merge.ts';
import { pieceSchemaOf } from '../../src/extractions/structure/piece-schema.ts';
import { divideText } from '../../src/extractions/structure/pieces.ts';
import { locateValues } from '../../src/extractions/structure/spans.ts';

/** What each value of the data is in the text, by its pointer. */
async function placesOf(data: unknown, text: string): Promise<Record<string, string>> {
  const spans = await locateValues(data, text, [{ piece: { start: 0, end: text.length }, result: data }]);
  return Object.fromEntries(spans.map(({ path, start, end }) => [path, text.slice(start, end)]));
}

test('a number is found in every notation of its value, and in no other', async () => {
  const cases: [number, string, string | undefined][] = [
    [1234.5, 'a 1,234.50 b', '1,234.50'],
    [1234.5, 'a 1.234,5 b', '1.234,5'],
    [1234, 'a 1 234 b', '1 234'],
    [1234567, "a 1'234'567 b", "1'234'567"],
    [7, 'a 17 7.5 7 b', '7'],
    [7, 'a 17 and 70 b', undefined],
    [-5, 'a -5 b', '-5'],
    [-5, 'a 5 b', undefined],
    [2.5, 'the 2 5', undefined],
    [15, `${'1 2 3 4 5 6 7 8 9 10 '.repeat(5)}15`, '15'],
  ];
  for (const [value, text, place] of cases)
    assert.deepEqual(
      await placesOf({ value }, text),
      place === undefined ? {} : { '/value': place },
      `${value} ${text}`,
    );
});

test('a string is found apart from case, white space and marks, as whole words, and never otherwise', async () => {
  const cases: [string, string, string | undefined][] = [
    ['ACME GmbH', 'the **ACME**\n GmbH.', 'ACME**\n GmbH'],
    ['it’s “new”', 'It\'s "New"!', 'It\'s "New"'],
    ['Al', 'Also Alfred', undefined],
    ['東京', '私は東京都', '東京'],
    ['𝒳 team', 'a 𝒳  team', '𝒳  team'],
    ['', 'anything', undefined],
    ['**', 'a ** b', '**'],
    ['nowhere', 'somewhere', undefined],
  ];
  for (const [value, text, place] of cases)
    assert.deepEqual(await placesOf([value], text), place === undefined ? {} : { '/0': place }, value);
});

test('of several places the one nearest to the other values of the object is taken', async () => {
  const text = 'Ada 7 x\nBob 7 y\nEve 7 z\n';
  const spans = await locateValues([{ name: 'Bob', n: 7 }], text, [
    { piece: { start: 0, end: text.length }, result: null },
  ]);
  assert.deepEqual(spans, [
    { path: '/0/name', start: 8, end: 11 },
    { path: '/0/n', start: 12, end: 13 },
  ]);
});

test('pieces are the whole text, fit, and never divide a character', () => {
  const texts = ['', 'a', 'x'.repeat(5_000), '𝒳'.repeat(700), '# A\n\nb c. d\n\n'.repeat(200), `${'é'.repeat(999)}\n`];
  for (const text of texts)
    for (const bytesMax of [4, 50, 999]) {
      const parts = divideText(text, bytesMax).map(({ start, end }) => text.slice(start, end));
      assert.equal(parts.join(''), text);
      for (const part of parts) assert.ok(Buffer.byteLength(part) <= bytesMax && part !== '' && part.isWellFormed());
    }
});

test('a schema is relaxed along its objects, also behind references, and its items stay as they are', () => {
  const item = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
  const { schema, merge } = pieceSchemaOf({
    type: 'object',
    properties: { list: { type: 'array', minItems: 1, items: item }, one: { $ref: '#/$defs/one' } },
    required: ['list'],
    $defs: { one: item },
  });
  assert.deepEqual(
    [merge, schema],
    [
      'by_rule',
      {
        type: 'object',
        properties: {
          list: { type: 'array', items: item },
          one: { type: 'object', properties: { n: { anyOf: [{ type: 'integer' }, { type: 'null' }] } } },
        },
        $defs: { one: item },
      },
    ],
  );
});

test('schemas without a rule, and those that refer to themselves or grow without end, are left to the model', () => {
  const doubling = Object.fromEntries(
    Array.from({ length: 30 }, (_, n) => [
      `d${n}`,
      { type: 'object', properties: { a: { $ref: `#/$defs/d${n + 1}` }, b: { $ref: `#/$defs/d${n + 1}` } } },
    ]),
  );
  for (const schema of [
    { oneOf: [{ type: 'object' }] },
    { type: 'object', patternProperties: { '^a': {} } },
    { type: 'object', properties: { self: { $ref: '#' } } },
    { $ref: '#/$defs/d0', $defs: { ...doubling, d30: { type: 'string' } } },
    { type: 'array', prefixItems: [{ type: 'number' }] },
  ])
    assert.equal(pieceSchemaOf(schema).merge, 'by_model', JSON.stringify(schema).slice(0, 80));
});

test('results merge to one value under any name of their members', () => {
  assert.deepEqual(mergeResults([{ a: [1, { x: 1, y: 2 }] }, null, { a: [{ y: 2, x: 1 }, 3], b: null }]), {
    a: [1, { x: 1, y: 2 }, 3],
    b: null,
  });
  assert.equal(mergeResults(['b', 'a', 'a', 'b', null]), 'b');
  const own = mergeResults([JSON.parse('{"__proto__":{"x":1}}'), JSON.parse('{"__proto__":{"y":2}}')]);
  assert.equal(JSON.stringify(own), '{"__proto__":{"x":1,"y":2}}');
  assert.equal(Object.getPrototypeOf(own), Object.prototype);
});

test('a refused format is cached for the process until a schema was accepted, and then for that schema', () => {
  const formats = new ResponseFormats();
  formats.noteRefused('json_schema', { a: 1 }, 'response_format type');
  assert.equal(formats.choose({ b: 1 }), 'json_object');
  const proven = new ResponseFormats();
  proven.noteAccepted('json_schema');
  proven.noteRefused('json_schema', { a: 1 }, 'Invalid schema');
  assert.deepEqual([proven.choose({ a: 1 }), proven.choose({ b: 1 })], ['json_object', 'json_schema']);
  proven.noteRefused('json_object', { a: 1 }, '');
  assert.equal(proven.choose({ a: 1 }), 'none');
});
