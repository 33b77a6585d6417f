import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SecretValues } from '../../src/automations/engine/secret-values.ts';
import { TextIndex } from '../../src/automations/engine/text-index.ts';
import fc from '../support/fast-check.ts';
import { speedTest, startWatch } from '../support/speed.ts';

const token = 'pa ss/"w+rd\u00e9#';
const values = new SecretValues({ TOKEN: token, PIN: '48151623', SHORT: 'abc', OTHER: 'open sesame' });
const plain = (value: unknown) => JSON.parse(JSON.stringify(value ?? null));

function throughTheDatabase(value: unknown) {
  const { value: stored, places } = values.redact(value);
  return values.restore(plain(stored), plain(places));
}

test('a secret is found as it is, encoded, in keys and as a number', () => {
  const encoded = Buffer.from(`user:${token}`).toString('base64');
  const held = {
    header: `Bearer ${token}`,
    url: `https://x.test/?q=${encodeURIComponent(token)}`,
    form: new URLSearchParams({ q: token }).toString(),
    basic: `Basic ${encoded}`,
    web: Buffer.from(`u:${token}.`).toString('base64url'),
    json: JSON.stringify({ token }),
    pin: 48151623,
    short: ['abc', 'abcd'],
    [`of ${token}`]: { [token]: 1 },
  };
  const { value } = values.redact(held);
  const text = JSON.stringify(value);
  assert.deepEqual(plain(value), {
    ...(value as object),
    header: 'Bearer [redacted]',
    url: 'https://x.test/?q=[redacted]',
    form: 'q=[redacted]',
    json: '{"token":"[redacted]"}',
    pin: '[redacted]',
    short: ['[redacted]', 'abcd'],
    'of [redacted]': { '[redacted]': 1 },
  });
  for (const trace of [token, encodeURIComponent(token), '48151623', encoded.slice(8, 24)])
    assert.ok(!text.includes(trace), `${trace} in ${text}`);
  assert.deepEqual(throughTheDatabase(held).value, held);
  assert.deepEqual(values.namesIn(held).sort(), ['PIN', 'SHORT', 'TOKEN']);
});

test('values that only look redacted are unchanged', () => {
  const echo = { said: '[redacted] and [redacted]', '[redacted]': 1 };
  assert.deepEqual(throughTheDatabase({ ...echo, token }).value, { ...echo, token });
  assert.equal(values.redact(echo).value, echo);
});

test('a deleted secret stays redacted, and is named', () => {
  const { value, places } = values.redact({ a: `x ${token} y open sesame z` });
  assert.deepEqual(new SecretValues({ OTHER: 'changed' }).restore(value, places), {
    value: { a: 'x [redacted] y changed z' },
    gone: ['TOKEN'],
  });
});

test('for any value, the database gets no secret and the engine gets the value', () => {
  const forms = [token, encodeURIComponent(token), Buffer.from(token).toString('base64'), '48151623', 'abc'];
  const text = fc
    .array(fc.oneof(fc.constantFrom(...forms, '[redacted]', '#2', '__proto__', 'x'), fc.string({ unit: 'grapheme' })), {
      maxLength: 5,
    })
    .map((parts) => parts.join(''));
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof(
      { depthSize: 'small' },
      text,
      fc.constantFrom(48151623, 1, -0.5, null, true),
      fc.array(tie('json'), { maxLength: 4 }),
      fc.array(fc.tuple(text, tie('json')), { maxLength: 4 }).map((members) => Object.fromEntries(members)),
    ),
  }));
  fc.assert(
    fc.property(json, (given) => {
      const value = plain(given);
      const stored = JSON.stringify(values.redact(value).value);
      for (const form of [JSON.stringify(token).slice(1, -1), ...forms.slice(1, 3)]) assert.ok(!stored.includes(form));
      const { value: restored, gone } = throughTheDatabase(value);
      assert.deepEqual(restored, value);
      assert.deepEqual(gone, []);
    }),
    { numRuns: 2_000 },
  );
});

test('a value nested as deep as JSON allows is handled', () => {
  let deep: unknown = token;
  for (let level = 0; level < 2_000; level++) deep = level % 2 === 0 ? [deep] : { a: deep };
  assert.deepEqual(JSON.stringify(throughTheDatabase(deep).value), JSON.stringify(deep));
});

test('a text shown in parts is redacted as in one piece, and nothing is held back that cannot be a secret', () => {
  const secrets = new SecretValues({ TOKEN: token, PIN: '48151623', OTHER: 'open sesame' });
  const piece = fc.oneof(
    fc.constantFrom(token, encodeURIComponent(token), '48151623', 'open sesame', '481', 'open ses', 'pa ss'),
    fc.string({ maxLength: 5 }),
  );
  const given = fc.array(piece, { maxLength: 8 });
  fc.assert(
    fc.property(given, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (pieces, sizes) => {
      const text = pieces.join('');
      let shown = '';
      let rest = '';
      for (let at = 0, n = 0; at < text.length; n++) {
        const size = sizes[n % sizes.length] ?? 1;
        const beginning = secrets.redactBeginning(rest + text.slice(at, at + size));
        shown += beginning.done;
        rest = beginning.rest;
        at += size;
      }
      assert.equal(shown + String(secrets.redact(rest).value), secrets.redact(text).value);
    }),
    { numRuns: 2_000 },
  );
  assert.deepEqual(secrets.redactBeginning('Nothing of it yet'), { done: 'Nothing of it yet', rest: '' });
  assert.deepEqual(secrets.redactBeginning('The pin is 4815'), { done: 'The pin is ', rest: '4815' });
});

test('a long secret is found in every form, though many begin like it', () => {
  const begin = '-----BEGIN PRIVATE KEY "é\u{1f600}" + ';
  const ends = Array.from({ length: 4 }, (_, i) => `/${i}\u{1f600}${'é\n/+ x'.repeat(500 + i)}`);
  const named = Object.fromEntries(
    ends.flatMap((end, i) => [
      [`LONG${i}`, begin + end],
      // Characters of two units at every place of the beginning.
      [`PAIRS${i}`, `${'x'.repeat(i)}${'\u{1f600}'.repeat(30)}${end}`],
    ]),
  );
  for (const [name, secret] of Object.entries(named)) {
    const bytes = Buffer.from(secret);
    const forms = [
      ...[secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)],
      ...[
        new URLSearchParams({ q: secret }).toString().slice(2),
        bytes.toString('base64'),
        bytes.toString('base64url'),
      ],
      ...['a', 'ab', 'abc'].map((before) => Buffer.concat([Buffer.from(before), bytes]).toString('base64')),
    ];
    for (const form of forms) {
      const values = new SecretValues(named);
      const { value, places } = values.redact({ a: [`<${form}>`] });
      assert.deepEqual([...new Set(places.map((place) => place.secret))], [name]);
      assert.ok(JSON.stringify(value).length < 60);
      assert.deepEqual(new SecretValues(named).restore(plain(value), plain(places)).value, { a: [`<${form}>`] });
      const half = form.slice(0, Math.floor(form.length / 2));
      assert.match(new SecretValues(named).redactBeginning(`<<${half}`).done, /^<<.{0,4}$/);
    }
  }
});

speedTest('secrets that a value does not contain are not encoded', () => {
  const named = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`S${i}`, `${i} `.repeat(5_000)]));
  const measure = (value: unknown) => {
    const times = [1, 2, 3].map(() => {
      const watch = startWatch();
      new SecretValues(named).redact(value);
      return watch.passedMs();
    });
    return Math.min(...times);
  };
  const none = { some: 'Nothing of them.' };
  assert.equal(new SecretValues(named).redact(none).value, none);
  const all = measure(Object.values(named).map((secret) => `${secret.slice(0, 100)}-`));
  const ratio = measure(none) / all;
  assert.ok(ratio < 0.5, `${ratio}`);
});

test('many texts are found as if each were looked for at each position', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'é'), minLength: 3, maxLength: 6 });
  const within = fc.string({ unit: fc.constantFrom('a', 'b', 'é', 'c'), maxLength: 40 });
  fc.assert(
    fc.property(fc.uniqueArray(text, { maxLength: 8 }), within, (texts, given) => {
      const found = [...new TextIndex(texts.map((one) => ({ text: one, of: one }))).find(given)];
      const expected: { start: number; of: string }[] = [];
      for (let at = 0; at < given.length; ) {
        const [longest] = texts.filter((one) => given.startsWith(one, at)).sort((a, b) => b.length - a.length);
        if (longest !== undefined) expected.push({ start: at, of: longest });
        at += longest?.length ?? 1;
      }
      assert.deepEqual(found, expected);
    }),
  );
});

test('500 secrets in 10,000 keys and texts cost a moment, and not minutes', () => {
  const named = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`S${i}`, `secret number ${i} of many`]));
  const secrets = new SecretValues(named);
  const held = Object.fromEntries(
    Array.from({ length: 10_000 }, (_, i) => [`${i} ${named[`S${i % 500}`]}`, [i, `a text that is long enough ${i}`]]),
  );
  const taken = Array.from({ length: 10_000 }, (_, i) => [i === 0 ? '[redacted]' : `[redacted]#${i + 1}`, i]);
  const whole = { held, named: Object.fromEntries([...taken, ...Object.values(named).map((name) => [name, 1])]) };
  const { value, places } = secrets.redact(whole);
  assert.ok(!JSON.stringify(value).includes('secret number'));
  assert.deepEqual(secrets.restore(plain(value), plain(places)).value, whole);
});

test('a secret in hexadecimal, in either case and within other text, is redacted and restored', () => {
  const token = 'correct-horse-é-🐎';
  const values = new SecretValues({ TOKEN: token });
  const hex = Buffer.from(token).toString('hex');
  for (const text of [hex, hex.toUpperCase(), `id=${hex};`, `0x${hex.toUpperCase()}00`]) {
    const { value, places } = values.redact({ text });
    assert.doesNotMatch(JSON.stringify(value).toLowerCase(), new RegExp(hex));
    assert.deepEqual(values.restore(value, places), { value: { text }, gone: [] });
  }
});

speedTest('a long text of secrets is redacted and restored in time that grows with its length', () => {
  const secrets = new SecretValues({ SHORT: 'abcd' });
  const timeOf = (count: number) => {
    const text = 'abcd'.repeat(count);
    const watch = startWatch();
    const { value, places } = secrets.redact({ text });
    const restored = secrets.restore(value, places);
    const tookMs = watch.passedMs();
    assert.deepEqual([places.length, restored.value], [count, { text }]);
    return tookMs;
  };
  timeOf(1_000);
  // It took 9.5 s when each secret copied the whole text.
  const took = Math.min(timeOf(60_000), timeOf(60_000));
  assert.ok(took < 500, `${took} ms`);
});
