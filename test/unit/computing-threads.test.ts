import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { setEnvironmentData } from 'node:worker_threads';
import { PostingsBuilder } from '../../src/content/postings.ts';
import { packColumns } from '../../src/knowledge/computing/columns.ts';
import { tasks } from '../../src/knowledge/computing/tasks.ts';
import { ComputingThreads } from '../../src/knowledge/computing/threads.ts';

const chunks = 60_000;

/** A text ranking in which every chunk has one word and every seventh another. */
function textInput() {
  const termIn = (step: number) => {
    const ordinals = Int32Array.from({ length: Math.ceil(chunks / step) }, (_ordinal, i) => i * step);
    const columns = {
      ordinals,
      tallies: Uint16Array.from(ordinals, (ordinal) => 2 + (ordinal % 40)),
      lengths: Uint16Array.from(ordinals, (ordinal) => 20 + (ordinal % 300)),
    };
    return { count: 1, lists: packColumns(columns).map((packed) => ({ base: 0, columns: packed })) };
  };
  const rows = new Uint8Array(chunks).fill(3);
  const statistics = { chunks, averageLength: 120, hasDead: false };
  return { terms: [termIn(1), termIn(7)], statistics, rows, titled: 0.25, count: 200 };
}

test('a thread that ends is replaced, and the search in it is answered', async () => {
  const program = fileURLToPath(new URL('../fixtures/ending-thread.ts', import.meta.url));
  const started = new Int32Array(new SharedArrayBuffer(4));
  setEnvironmentData('started', started.buffer);
  const threads = new ComputingThreads({ program });
  after(() => threads.close());
  const input = textInput();
  assert.deepEqual(await threads.run('app', chunks, 'rankText', input), tasks.rankText(input));
  assert.equal(started[0], 2);
});

test('an error in a thread fails its search alone', async () => {
  const threads = new ComputingThreads();
  after(() => threads.close());
  const input = textInput();
  await assert.rejects(
    threads.run('app', chunks, 'rankText', { ...input, terms: [{}] } as never),
    /failed in its thread/,
  );
  assert.deepEqual(await threads.run('app', chunks, 'rankText', input), tasks.rankText(input));
});

test('searches of many apps at once have the results that each has alone', async () => {
  const threads = new ComputingThreads();
  after(() => threads.close());
  const input = textInput();
  const expected = tasks.rankText(input);
  const all = await Promise.all(
    Array.from({ length: 40 }, (_search, i) => threads.run(`app ${i % 5}`, chunks, 'rankText', input)),
  );
  for (const one of all) assert.deepEqual(one, expected);
});

test('the event loop goes before threads of searches', { skip: process.platform !== 'linux' }, async () => {
  const threads = new ComputingThreads();
  after(() => threads.close());
  await threads.run('app', chunks, 'rankText', textInput());
  /** Of a thread of this process: its 19th field, of which a name in parentheses is the second. */
  const nicenessOf = (thread: string | number) => {
    const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]);
  };
  const own = nicenessOf(process.pid);
  const lower = Math.min(19, own + 5);
  assert.ok(readdirSync('/proc/self/task').some((thread) => nicenessOf(thread) === lower));
  assert.equal(nicenessOf(process.pid), own);
});

test('a thread of searches has a small young generation, whatever the process has', async () => {
  setFlagsFromString('--max-semi-space-size=32');
  const threads = new ComputingThreads({
    program: fileURLToPath(new URL('../fixtures/growing-thread.ts', import.meta.url)),
  });
  after(() => threads.close());
  const bytes = (await threads.run('app', chunks, 'rankText', textInput())) as unknown as number;
  assert.ok(bytes > 0 && bytes <= 8 * 1024 * 1024, `${bytes} bytes`);
});

test('memory that is given back while a thread uses it is not lent again before the thread has finished', async () => {
  const threads = new ComputingThreads({ sizeMin: 0 });
  after(() => threads.close());
  const builder = new PostingsBuilder();
  for (let ordinal = 0; ordinal < chunks; ordinal++)
    builder.add({ ordinal, length: 20 + (ordinal % 300), terms: new Map([['word', [1]]]) });
  const bytes = builder.finish()[0]?.postings ?? new Uint8Array();
  const expected = tasks.unpackPostings([{ parts: [bytes], lengths: undefined }]);
  for (let round = 0; round < 5; round++) {
    const memory = threads.borrow();
    const unpacked = Array.from({ length: 6 }, () => {
      const term = { parts: [memory.copy(bytes)], lengths: undefined };
      return threads.run('app', chunks, 'unpackPostings', [term]);
    });
    memory.giveBack();
    assert.throws(() => memory.take(1), /was given back/);
    const next = threads.borrow();
    for (let i = 0; i < 6; i++) next.take(bytes.length).fill(0);
    for (const one of unpacked) assert.deepEqual(await one, expected);
    next.giveBack();
  }
});

test('memory that is borrowed belongs to one search, until it is given back and used again', async () => {
  const threads = new ComputingThreads();
  after(() => threads.close());
  const buffers = new Set<ArrayBufferLike>();
  const borrow = async (searchesAtOnce = 4) => {
    const searches = Array.from({ length: searchesAtOnce }, () => threads.borrow());
    const parts = Array.from({ length: 120 }, (_part, i) => {
      const bytes = Buffer.alloc(1 + i * 1_001, i);
      return { bytes, part: searches[i % searchesAtOnce]?.copy(bytes) ?? new Uint8Array() };
    });
    for (const { bytes, part } of parts) {
      assert.ok(bytes.equals(part));
      // So that numbers of any size may be there.
      assert.equal(part.byteOffset % 16, 0);
      buffers.add(part.buffer);
    }
    for (const memory of searches) memory.giveBack();
    // No thread uses it.
    await setImmediate();
    return buffers.size;
  };
  // More than later rounds need: they use only what they gave back themselves.
  await borrow(40);
  buffers.clear();
  const first = await borrow();
  for (let round = 0; round < 3; round++) assert.equal(await borrow(), first);
});
