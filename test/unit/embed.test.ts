import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { cosineEstimator, packedCosine, packVector, signCode, unpackVector } from '../../src/content/embed/codes.ts';
import { EmbeddingError, normalize } from '../../src/content/embed/embedder.ts';
import { hammingDistances } from '../../src/content/embed/hamming.ts';
import { inLanes } from '../../src/content/embed/in-lanes.ts';
import { lexicalEmbedder } from '../../src/content/embed/lexical.ts';
import { openAiEmbedder } from '../../src/content/embed/openai.ts';
import { transformersEmbedder } from '../../src/content/embed/transformers.ts';
import { withRoomFor } from '../../src/knowledge/computing/shared.ts';
import { startEmbeddingService } from '../support/embedding-service.ts';
import fc from '../support/fast-check.ts';

const service = await startEmbeddingService();
after(() => service.close());
const lexical = lexicalEmbedder();
const lexicalVector = async (text: string) => (await lexical.embed([text], 'query'))[0] ?? new Float32Array();
const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);

test('16-bit floats keep the components of unit vectors to a thousandth of their size', () => {
  fc.assert(
    fc.property(fc.array(fc.float({ min: -1, max: 1, noNaN: true }), { minLength: 8, maxLength: 64 }), (values) => {
      const vector = normalize(Float32Array.from(values));
      const back = unpackVector(packVector(vector));
      for (const [i, value] of vector.entries())
        assert.ok(Math.abs((back[i] ?? 0) - value) <= Math.abs(value) / 1_000 + 1e-7);
    }),
  );
});

test('the cosine of a packed vector is the cosine', async () => {
  const [a, b] = [await lexicalVector('The red fox jumps.'), await lexicalVector('A red fox jumped over.')];
  assert.ok(Math.abs(packedCosine(a, packVector(b)) - dot(a, b)) < 1e-3);
});

test('the built-in embedder is deterministic, of unit length, and near for misspelt, compound and inflected words', async () => {
  const a = await lexicalVector('The international conference on databases');
  assert.deepEqual(a, await lexicalVector('The international conference on databases'));
  assert.ok(Math.abs(dot(a, a) - 1) < 1e-5);
  const near = dot(a, await lexicalVector('internatoinal conferences about database'));
  const far = dot(a, await lexicalVector('boiled potatoes with butter'));
  assert.ok(near > 0.4 && far < 0.15, `${near} ${far}`);
  assert.equal(dot(await lexicalVector(''), a), 0);
});

test('200 candidates by Hamming distance hold at least 95 of the 100 nearest, half as many by the estimate 98', async () => {
  let seed = 3;
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed / 2_147_483_648;
  };
  const syllables = ['ka', 'lo', 'mi', 'ne', 'pu', 'ra', 'si', 'to', 'vu', 'za', 'ber', 'dun', 'fal', 'gor'];
  const words = Array.from({ length: 3_000 }, () =>
    Array.from({ length: 2 + Math.floor(random() * 3) }, () => syllables[Math.floor(random() * 14)]).join(''),
  );
  const word = () => words[Math.floor(words.length ** random())] ?? '';
  const texts = Array.from({ length: 2_000 }, () => Array.from({ length: 120 }, word).join(' '));
  const passages = await lexical.embed(texts, 'passage');
  const codes = passages.map(signCode);
  const table = new Uint32Array(codes.length * 32);
  for (const [row, one] of codes.entries()) table.set(one, row * 32);
  let found = 0;
  let foundByEstimate = 0;
  let wanted = 0;
  for (const length of [2, 4, 12, 40])
    for (let i = 0; i < 10; i++) {
      const query = await lexicalVector(
        (texts[(i * 97 + length) % texts.length] ?? '').split(' ').slice(0, length).join(' '),
      );
      const code = signCode(query);
      const out = new Uint16Array(codes.length);
      for (const [row, one] of codes.entries()) hammingDistances(code, bytesOf(one), 1, out, row);
      const order = (score: (row: number) => number) =>
        codes.map((_code, row) => row).sort((a, b) => score(b) - score(a));
      const candidates = new Set(order((row) => -(out[row] ?? 0)).slice(0, 200));
      const estimate = cosineEstimator(query);
      const estimates = codes.map((_code, row) => estimate(table, row));
      const half = new Set(order((row) => estimates[row] ?? 0).slice(0, 100));
      const exact = passages.map((passage) => dot(query, passage));
      const best = order((row) => exact[row] ?? 0).slice(0, 10);
      found += best.filter((row) => candidates.has(row)).length;
      foundByEstimate += best.filter((row) => half.has(row)).length;
      wanted += best.length;
    }
  assert.ok(found / wanted >= 0.95, `${found / wanted}`);
  assert.ok(foundByEstimate / wanted >= 0.98, `${foundByEstimate / wanted}`);
});

test('a service is tried again when it may recover, and not when it refuses or returns nonsense', async () => {
  const waits: number[] = [];
  const sleep = async (ms: number) => {
    waits.push(ms);
    if (waits.length === 2) service.broken = undefined;
  };
  const embedder = openAiEmbedder({ baseUrl: service.url, model: 'm', dimensions: 64, sleep });
  service.broken = 503;
  assert.equal((await embedder.embed(['hello'], 'query')).length, 1);
  assert.equal(waits.length, 2);
  service.broken = 401;
  await assert.rejects(embedder.embed(['hello'], 'query'), EmbeddingError);
  service.broken = undefined;
  const wrong = openAiEmbedder({ baseUrl: service.url, model: 'm', dimensions: 63, sleep });
  await assert.rejects(wrong.embed(['hello'], 'query'), /64 dimensions, not 63/);
  assert.deepEqual(await embedder.embed([], 'query'), []);
});

test('vectors for texts that were not sent are refused, however large their index is', async () => {
  const embedder = openAiEmbedder({ baseUrl: service.url, model: 'm', dimensions: 64 });
  for (const index of [2, 4_294_967_294, -1, 0.5]) {
    service.alter = (data) => Object.assign(data[1] ?? {}, { index });
    await assert.rejects(embedder.embed(['one', 'two'], 'passage'), /a text that was not sent/, String(index));
  }
  service.alter = undefined;
});

test('a local model without its package says so', async () => {
  const embedder = transformersEmbedder({ model: '/nowhere', dimensions: 8 });
  await assert.rejects(embedder.embed(['x'], 'query'), EmbeddingError);
});

function bytesOf(codes: Uint32Array) {
  return { bytes: new Uint8Array(codes.buffer) };
}

test('Hamming distances are the numbers of differing bits, for codes of any length', () => {
  const bits = (word: number) => (word >>> 0).toString(2).replaceAll('0', '').length;
  const lengths = fc.constantFrom(1, 2, 3, 4, 8, 32, 33, 128);
  const word = fc.oneof(fc.constantFrom(0, 0xffffffff), fc.nat(0xffffffff));
  const given = lengths.chain((words) =>
    fc.record({
      query: fc.array(word, { minLength: words, maxLength: words }),
      codes: fc.array(fc.array(word, { minLength: words, maxLength: words }), { maxLength: 20 }),
      copies: fc.constantFrom(1, 700),
    }),
  );
  fc.assert(
    fc.property(given, ({ query, codes, copies }) => {
      const all = Array.from({ length: copies }, () => codes).flat();
      const given = bytesOf(Uint32Array.from(all.flat()));
      const shared = withRoomFor({ bytes: new Uint8Array(0) }, 4 * 1024 * 1024);
      shared.bytes.set(given.bytes);
      for (const scanned of [given, shared]) {
        const out = new Uint16Array(all.length + 2).fill(9);
        hammingDistances(Uint32Array.from(query), scanned, all.length, out, 1);
        const expected = codes.map((code) => code.reduce((sum, one, i) => sum + bits(one ^ (query[i] ?? 0)), 0));
        assert.deepEqual([...out], [9, ...Array.from({ length: copies }, () => expected).flat(), 9]);
      }
    }),
    { numRuns: 60 },
  );
});

test('codes for whose memory the process has no addresses left are kept elsewhere', (context) => {
  const full = 4 * 1024 * 1024;
  const { WebAssembly: wasm } = globalThis as unknown as { WebAssembly: { Memory(): object } };
  const shared = withRoomFor({ bytes: Uint8Array.of(1, 2, 3) }, full);
  assert.ok(shared.memory);
  context.mock.method(shared.memory, 'grow', () => {
    throw new RangeError('WebAssembly.Memory.grow(): Unable to grow instance memory');
  });
  context.mock.method(wasm, 'Memory', function refuse() {
    throw new RangeError('WebAssembly.Memory(): could not allocate memory');
  });
  for (const codes of [{ bytes: Uint8Array.of(1, 2, 3) }, shared]) {
    const larger = withRoomFor(codes, 2 * full);
    assert.equal(larger.memory, undefined);
    assert.deepEqual([larger.bytes.length, ...larger.bytes.subarray(0, 4)], [2 * full, 1, 2, 3, 0]);
  }
});

test('an app that embeds a library keeps no other app waiting for its vectors', async () => {
  const gate = Promise.withResolvers<void>();
  let asked = 0;
  const shared = inLanes({
    ...lexical,
    local: false,
    async embed(texts) {
      asked += 1;
      if (texts[0] === 'library') await gate.promise;
      return lexical.embed(texts, 'passage');
    },
  });
  const library = Array.from({ length: 50 }, () => shared.embed('hostile', ['library'], 'passage'));
  assert.equal((await shared.embed('other', ['a question'], 'query')).length, 1);
  assert.equal(asked, 5);
  gate.resolve();
  assert.equal((await Promise.all(library)).length, 50);
});

test('a compressed or oversized response of a service is refused without decompression', async () => {
  let respond: (response: ServerResponse) => void = () => {};
  const server = createServer((request, response) => {
    assert.equal(request.headers['accept-encoding'], 'identity');
    request.resume().on('end', () => respond(response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const embedder = openAiEmbedder({ baseUrl, model: 'm', dimensions: 2 });
  try {
    const vectors = JSON.stringify({ data: [{ embedding: [1, 0] }] });
    respond = (response) => response.end(vectors);
    assert.equal((await embedder.embed(['hello'], 'query')).length, 1);
    respond = (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(vectors));
    await assert.rejects(embedder.embed(['hello'], 'query'), /compressed its response/);
    const left = Promise.withResolvers<void>();
    respond = (response) => {
      response.once('close', left.resolve);
      const blanks = Buffer.alloc(64 * 1024, ' ');
      const send = (): void => void (response.destroyed || response.write(blanks, send));
      send();
    };
    await assert.rejects(embedder.embed(['hello'], 'query'), /returned more than 1048704 bytes/);
    await left.promise;
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test('an aborted call leaves its lane, its wait between tries and its request, with the reason of the signal', async () => {
  const sleeping = Promise.withResolvers<void>();
  const busy = openAiEmbedder({
    ...{ baseUrl: service.url, model: 'm', dimensions: 64 },
    sleep: (_ms, signal) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason));
        sleeping.resolve();
      }),
  });
  const abort = new AbortController();
  service.broken = 503;
  const between = assert.rejects(busy.embed(['hello'], 'passage', abort.signal), /the source is gone/);
  await sleeping.promise;
  service.broken = undefined;
  service.silentOn = 'library';
  const shared = inLanes(openAiEmbedder({ baseUrl: service.url, model: 'm', dimensions: 64 }));
  const calls = Array.from({ length: 6 }, () =>
    assert.rejects(shared.embed('app', ['library'], 'passage', abort.signal), /the source is gone/),
  );
  await service.waitForOpenRequests(4);
  abort.abort(new Error('the source is gone'));
  await Promise.all([between, ...calls]);
  assert.equal(service.hanging.length, 4);
  service.silentOn = undefined;
  assert.equal((await shared.embed('app', ['a question'], 'query')).length, 1);
});
