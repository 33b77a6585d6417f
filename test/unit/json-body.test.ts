import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJson } from '../../src/http/body/json.ts';
import { LongTextReader } from '../../src/http/body/long-text.ts';
import { AppError } from '../../src/lib/errors.ts';
import { limits } from '../../src/lib/limits.ts';
import fc from '../support/fast-check.ts';
import { inShortTurns } from '../support/speed.ts';

const valuesMax = 150_000;
const read = (text: string) => parseJson(Buffer.from(text), valuesMax);
const refusal = (text: string): AppError | undefined => {
  try {
    read(text);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof AppError);
    return error;
  }
};

/** The digits and the exponent of a decimal number, without a double in between. */
function exactly(text: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$/.exec(text) ?? [];
  let [digits, power] = [BigInt(whole + fraction), Number(exponent) - fraction.length];
  if (digits === 0n) return '0';
  for (; digits % 10n === 0n; digits /= 10n) power += 1;
  return `${sign}${digits}e${power}`;
}

test('a number is refused exactly if a double alters it', () => {
  const digits = (max: number) => fc.stringMatching(new RegExp(`^(0|[1-9][0-9]{0,${max}})$`));
  const number = fc
    .tuple(
      fc.constantFrom('', '-'),
      digits(25),
      fc.option(fc.stringMatching(/^[0-9]{1,25}$/)),
      fc.option(fc.tuple(fc.constantFrom('e', 'E', 'e-', 'e+'), fc.integer({ min: 0, max: 400 }))),
    )
    .map(([sign, whole, fraction, exponent]) =>
      [sign, whole, fraction === null ? '' : `.${fraction}`, exponent?.join('') ?? ''].join(''),
    );
  fc.assert(
    fc.property(number, (text) => {
      const value = Number(text);
      const survives = Number.isFinite(value) && exactly(text) === exactly(String(value));
      assert.equal(refusal(`[${text}]`) === undefined, survives, text);
    }),
    { numRuns: 5_000 },
  );
});

test('the members of all objects are counted, however they are nested, and items of lists are not', () => {
  const members = (count: number) => Array.from({ length: count }, (_, index) => `"k${index}":1`).join();
  assert.equal(refusal(`{${members(limits.jsonMembersMax)}}`), undefined);
  const more = [
    `{${members(limits.jsonMembersMax + 1)}}`,
    `{"a":{${members(limits.jsonMembersMax)}}}`,
    `[${'{"a":1},'.repeat(limits.jsonMembersMax)}{"a":1}]`,
  ];
  for (const text of more) assert.match(refusal(text)?.message ?? '', /at most 40000 members/);
  assert.equal(refusal(`["${':'.repeat(60_000)}"${',1'.repeat(100_000)}]`), undefined);
});

test('what is left of a body without its long strings is limited, and read in turns', async () => {
  const end = async (text: string) => {
    const reader = new LongTextReader();
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += 65_536) reader.push(bytes.subarray(at, at + 65_536));
    return reader.end(valuesMax, undefined, 'app');
  };
  const texts = (count: number, length: number) =>
    `[${Array.from({ length: count }, () => `"${'x'.repeat(length)}"`)}]`;
  await assert.rejects(end(texts(150, 60_000)), /apart from strings/);
  assert.equal(((await end(texts(100, 80_000))) as string[]).length, 100);
  const numbers = Array.from({ length: valuesMax - 2 }, (_, index) => (index + 0.5) / 7.3);
  const body = JSON.stringify({ numbers });
  await inShortTurns(50, 'numbers', () => end(body));
  assert.deepEqual(await end(body), { numbers });
});

test('one number of millions of digits takes its length', () => {
  const error = refusal(`{"a":{"b":[1,${'9'.repeat(4_000_000)}]}}`);
  assert.equal(error?.fields?.[0]?.field, 'a.b.1');
});
