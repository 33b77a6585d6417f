import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeLongBase64, encodeLongText, findLongText, LongTextReader } from '../../src/http/body/long-text.ts';
import { AppError } from '../../src/lib/errors.ts';
import { longArgumentsAt, shareLongArguments, textInBase64 } from '../../src/mcp/long-arguments.ts';
import fc from '../support/fast-check.ts';

const valuesMax = 1_000;

/** Chunks of these sizes in turn. */
function chunksOf(text: string, sizes: number[]): Buffer[] {
  const bytes = Buffer.from(text);
  const chunks: Buffer[] = [];
  for (let at = 0, n = 0; at < bytes.length; n++) {
    const size = sizes[n % sizes.length] ?? bytes.length;
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return chunks;
}

async function read(text: string, sizes: number[], left?: RegExp): Promise<unknown> {
  const reader = new LongTextReader();
  for (const chunk of chunksOf(text, sizes)) reader.push(chunk);
  return reader.end(valuesMax, left, 'app');
}

async function bytesOf(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all);
}

/** Every kind of character at which a piece may end: escapes, runs of backslashes, surrogates, several bytes. */
const awkward = fc
  .array(fc.constantFrom('a', '\\', '\\\\', '"', '\n', '€', '😀', '\u0001', ' ', '\\"'), {
    minLength: 1,
    maxLength: 40,
  })
  .map((parts) => parts.join('').repeat(Math.ceil(70_000 / parts.join('').length)));
const sizes = fc.array(fc.integer({ min: 1, max: 9_000 }), { minLength: 1, maxLength: 8 });
/** In chunks, or whole. */
const arrivals = fc.oneof(sizes, fc.constant<number[]>([]));
const escapedAll = (value: unknown) =>
  JSON.stringify(value).replace(/[\u0080-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);

test('a body with long strings is read as JSON.parse reads it, however it arrives', async () => {
  await fc.assert(
    fc.asyncProperty(awkward, fc.string(), arrivals, fc.boolean(), async (long, short, pieces, isEscaped) => {
      const value = { short, data: long, nested: [{ data: short }, long, { [short || 'x']: [long, 1] }] };
      const text = isEscaped ? escapedAll(value) : JSON.stringify(value);
      assert.deepEqual(await read(text, pieces), value);
    }),
    { numRuns: 20 },
  );
});

test('long strings named data are left out, and decode to the same text and the same bytes', async () => {
  await fc.assert(
    fc.asyncProperty(awkward, sizes, fc.boolean(), async (long, pieces, isEscaped) => {
      const value = { content: { data: long } };
      const read1 = (await read(
        isEscaped ? escapedAll(value) : JSON.stringify(value),
        pieces,
        /^content\.data$/,
      )) as typeof value;
      assert.equal(read1.content.data, '');
      const text = findLongText(read1.content, 'data');
      assert.ok(text);
      assert.deepEqual(await bytesOf(encodeLongText('content.data', text, 'app')), Buffer.from(long));
    }),
    { numRuns: 20 },
  );
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 64 }), sizes, fc.nat(2), async (part, pieces, extra) => {
      const bytes = Buffer.concat([Buffer.alloc(70_000, part), Buffer.alloc(extra, 1)]);
      const body = (await read(JSON.stringify({ data: bytes.toString('base64') }), pieces, /^data$/)) as {
        data: string;
      };
      const text = findLongText(body, 'data');
      assert.ok(text);
      assert.deepEqual(await bytesOf(decodeLongBase64('data', text, 'app')), bytes);
    }),
    { numRuns: 20 },
  );
});

test('a long string that is not valid is refused as a short one is', async () => {
  const fill = 'QUFB'.repeat(20_000);
  const problems: [string, string][] = [
    [`{"data":"${fill}*"}`, 'invalid_parameters'],
    [`{"data":"${fill}QQ==${fill}"}`, 'invalid_parameters'],
    [`{"data":"${fill}QQ="}`, 'invalid_parameters'],
    [`{"data":"${fill}QR=="}`, 'invalid_parameters'],
    [`{"data":"${fill}\n"}`, 'invalid_json'],
    [`{"data":"${fill}\\q"}`, 'invalid_json'],
  ];
  for (const [body, code] of problems) {
    const text = findLongText((await read(body, [7_001], /^data$/)) as object, 'data');
    assert.ok(text);
    const isRefused = (error: unknown) => error instanceof AppError && error.code === code;
    await assert.rejects(bytesOf(decodeLongBase64('data', text, 'app')), isRefused, body.slice(-20));
  }
  const lone = findLongText((await read(`{"data":"${fill}\\ud800"}`, [7_001], /^data$/)) as object, 'data');
  assert.ok(lone);
  await assert.rejects(bytesOf(encodeLongText('data', lone, 'app')), /lone surrogate/);
  await assert.rejects(read(`{"data":"${fill}`, [7_001]), /not valid JSON/);
  await assert.rejects(read(`{"${fill}":1}`, [7_001]), /name of more than/);
  const latin = Buffer.concat([Buffer.from(`{"name":"${fill}`), Buffer.from([0xff]), Buffer.from('"}')]);
  const reader = new LongTextReader();
  for (let at = 0; at < latin.length; at += 7_001) reader.push(latin.subarray(at, at + 7_001));
  await assert.rejects(reader.end(valuesMax, undefined, 'app'), /not valid JSON/);
});

test('a long argument of a tool is not decoded on its way: a short string stands for it until the request ends', async () => {
  const data = 'QUFB'.repeat(50_000);
  const call = (name: string, given: object) => ({ method: 'tools/call', params: { name, arguments: given } });
  const body = [
    call('upload_file', { data }),
    call('upload_file', { text: 'é'.repeat(70_001) }),
    call('kv_put', { data }),
  ];
  const messages = (await read(JSON.stringify(body), [9_000], longArgumentsAt)) as typeof body;
  const shared = await shareLongArguments(messages, 'app');
  const [bytes, text, other] = messages.map((message) => message.params.arguments as Record<string, string>);
  assert.equal(other?.data, data, 'a tool that does not pass it on gets it whole');
  for (const [standIn, expected] of [
    [bytes?.data ?? '', Buffer.from(data, 'base64')],
    [textInBase64(text?.text ?? ''), Buffer.from('é'.repeat(70_001))],
  ] as const) {
    assert.ok(standIn.length < 100);
    const inner = (await read(JSON.stringify({ data: standIn }), [], /^data$/)) as { data: string };
    const found = findLongText(inner, 'data');
    assert.ok(found);
    assert.ok((await bytesOf(decodeLongBase64('data', found, 'app'))).equals(expected));
  }
  shared.end();
  await assert.rejects(read(JSON.stringify({ data: bytes?.data }), [], /^data$/), /not valid JSON/);
});
