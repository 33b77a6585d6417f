import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { readFileSync, readlinkSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isPartEvent } from '../../src/content/parse/mail/attachments.ts';
import { findConfinement, parserUserId } from '../../src/content/parse/pool/confinement.ts';
import { ParserPool } from '../../src/content/parse/pool/pool.ts';
import { ParseError } from '../../src/content/parse/types.ts';
import { createLogger } from '../../src/lib/log.ts';

const log = createLogger('silent');
const workerFile = fileURLToPath(new URL('../support/faulty-parser.ts', import.meta.url));
let pool: ParserPool;

before(() => {
  pool = new ParserPool({ workers: 1, memoryMb: 192, deadlineMs: 3_000, log, workerFile });
});

after(() => pool.close());

/** Runs a task of the faulty parser and gives the error it ends in. */
async function failureOf(what: string, options: { signal?: AbortSignal } = {}, by = pool): Promise<unknown> {
  return by.run('page', { bytes: Buffer.from(what) }, options).then(
    () => assert.fail('the task succeeded'),
    (error: unknown) => error,
  );
}

async function assertStillServes(): Promise<void> {
  assert.equal(await pool.run('page', { bytes: Buffer.from('echo') }), 'echo');
}

test('a crash costs one process and is extraction_failed', async () => {
  const error = await failureOf('crash');
  assert.ok(error instanceof ParseError);
  assert.equal(error.reason, 'extraction_failed');
  await assertStillServes();
});

test('a document whose parser is killed from outside is read by another, not called damaged', async () => {
  const { pid } = await pool.run<{ pid: number }>('page', { bytes: Buffer.from('place') });
  const reading = failureOf('hang');
  await new Promise(setImmediate);
  process.kill(pid, 'SIGKILL');
  const error = await reading;
  assert.ok(error instanceof ParseError);
  // The second process hung until its deadline.
  assert.equal(error.reason, 'timeout');
  await assertStillServes();
});

test('without network isolation, documents and pictures are refused, unless the setting says otherwise', async () => {
  const options = { workers: 1, memoryMb: 192, deadlineMs: 3_000, log, workerFile };
  const bytes = Buffer.from('echo');
  const exposed = new ParserPool({ ...options, needsIsolation: true, isIsolated: () => false });
  const refused = { name: 'ParseError', message: /QUARRY_PARSE_NETWORK/ };
  await assert.rejects(exposed.parse({ bytes, contentType: 'text/html', filename: 'a.html' }), refused);
  await assert.rejects(exposed.run('page', { bytes }), refused);
  await assert.rejects(exposed.imageSize(bytes, 1_000), refused);
  assert.deepEqual(exposed.counts, { ...exposed.counts, busy: 0, starting: 0 }, 'no process has started');
  await exposed.close();
  for (const allowed of [{ needsIsolation: false }, { needsIsolation: true, isIsolated: () => true }]) {
    const reading = new ParserPool({ isIsolated: () => false, ...options, ...allowed });
    assert.equal(await reading.run('page', { bytes }), 'echo');
    await reading.close();
  }
});

test('a document is refused when no parser process starts', async () => {
  const broken = new ParserPool({
    workers: 1,
    memoryMb: 192,
    deadlineMs: 3_000,
    log,
    workerFile: '/no/such/parser.ts',
  });
  await assert.rejects(broken.run('page', { bytes: Buffer.from('echo') }), /No parser process could be started/);
  await broken.close();
});

test('a pool that no document has reached keeps one process ready, and starts the others with the first', async () => {
  const fresh = new ParserPool({ workers: 2, memoryMb: 192, deadlineMs: 3_000, log, workerFile });
  const processes = () => fresh.counts.idle + fresh.counts.busy + fresh.counts.starting;
  try {
    fresh.warm();
    assert.equal(processes(), 1);
    await fresh.run('page', { bytes: Buffer.from('echo') });
    assert.equal(processes(), 3, 'one for each worker and a spare');
  } finally {
    await fresh.close();
  }
});

test('the wait for the size of an image begins when a process is ready, however slowly it starts', async () => {
  const slow = fileURLToPath(new URL('../support/slow-parser.ts', import.meta.url));
  const starting = new ParserPool({ workers: 1, memoryMb: 192, deadlineMs: 3_000, log, workerFile: slow });
  try {
    assert.deepEqual(await starting.imageSize(Buffer.from('any'), 1_500), { width: 1, height: 2 });
    await assert.rejects(starting.imageSize(Buffer.from('hang'), 100), { name: 'TimeoutError' });
  } finally {
    await starting.close();
  }
});

test('a process that reports what no parser reports is ended, and the document fails', async () => {
  const mail = { what: 'read', path: [], name: '', document: { kind: 'eml' }, attached: [] };
  const altered = [
    ...[null, 7, 'read', [], {}, { ...mail, what: 'other' }, { ...mail, path: '0' }, { ...mail, path: [{}] }],
    ...[
      { ...mail, document: null },
      { ...mail, attached: [1] },
      { ...mail, name: 1 },
      { what: 'failed', path: [0] },
    ],
  ];
  for (const part of altered) assert.equal(isPartEvent(part), false, JSON.stringify(part));
  const parse = (part: unknown) => pool.parse({ bytes: Buffer.from(JSON.stringify(part)) });
  await assert.rejects(parse(altered[8]), /made its parser crash/);
  assert.equal((await parse(mail)).kind, 'eml');
});

test('a hang ends at the deadline with timeout', async () => {
  const error = await failureOf('hang');
  assert.ok(error instanceof ParseError);
  assert.equal(error.reason, 'timeout');
  await assertStillServes();
});

test('unbounded memory of any kind ends one process with a plain reason', async () => {
  // A busy machine needs more than three seconds to fill the memory.
  const patient = new ParserPool({ workers: 1, memoryMb: 192, deadlineMs: 60_000, log, workerFile });
  try {
    for (const memory of ['heap', 'buffers', 'webassembly']) {
      const error = await failureOf(memory, {}, patient);
      assert.ok(error instanceof ParseError, memory);
      assert.equal(error.reason, 'extraction_failed', memory);
      assert.match(error.message, /needs more than 192 MB of memory/, memory);
      assert.equal(await patient.run('page', { bytes: Buffer.from('echo') }), 'echo', memory);
    }
  } finally {
    await patient.close();
  }
});

test('a parser process has no network, environment, files outside the code, processes or threads', async () => {
  const found = await pool.run<Record<string, string>>('page', { bytes: Buffer.from('confinement') });
  assert.deepEqual(found, {
    environment: '',
    readPasswd: 'ERR_ACCESS_DENIED',
    writeFile: 'ERR_ACCESS_DENIED',
    spawn: 'ERR_ACCESS_DENIED',
    thread: 'ERR_ACCESS_DENIED',
    connect: 'A parser process has no network.',
    fetch: 'undefined',
  });
});

type Place = { pid: number; userId: number; interfaces: string[] };
const confinement = findConfinement(workerFile);

test('the system bounds processor time, data and file size of a parser process', {
  skip: confinement.limits ? false : 'no limits of processes on this system',
}, async () => {
  const { pid } = await pool.run<Place>('page', { bytes: Buffer.from('place') });
  const limits = readFileSync(`/proc/${pid}/limits`, 'utf8');
  assert.match(limits, /^Max cpu time +3600 /m);
  assert.match(limits, new RegExp(`^Max data size +${(192 + 512) * 1024 * 1024} `, 'm'));
  assert.match(limits, /^Max file size +0 /m);
});

test('a parser process of a server that is root runs as another user without rights', {
  skip: process.getuid?.() !== 0 ? 'not root' : confinement.userId === undefined ? 'no setpriv on this system' : false,
}, async () => {
  const { pid, userId } = await pool.run<Place>('page', { bytes: Buffer.from('place') });
  assert.equal(userId, parserUserId);
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  assert.match(status, new RegExp(`^Uid:(\\s+${parserUserId}){4}$`, 'm'));
  assert.match(status, new RegExp(`^Gid:(\\s+${parserUserId}){4}$`, 'm'));
  assert.match(status, /^Groups:\s*$/m);
  assert.match(status, /^NoNewPrivs:\s+1$/m);
  const capability = confinement.readsAll ? /^CapEff:\s+0{15}4$/m : /^CapEff:\s+0{16}$/m;
  assert.match(status, capability);
});

test('a parser process has its own network, which reaches nothing', {
  skip: confinement.network ? false : 'no network namespaces for this user',
}, async () => {
  const { pid, interfaces } = await pool.run<Place>('page', { bytes: Buffer.from('place') });
  assert.deepEqual(interfaces, []);
  assert.notEqual(readlinkSync(`/proc/${pid}/ns/net`), readlinkSync('/proc/self/ns/net'));
});

test('an aborted task frees its process and gives the reason of the signal', async () => {
  const abort = new AbortController();
  const running = failureOf('hang', { signal: abort.signal });
  const waiting = failureOf('echo', { signal: abort.signal });
  abort.abort(new Error('the client left'));
  assert.equal(String(await running), 'Error: the client left');
  assert.equal(String(await waiting), 'Error: the client left');
  await assertStillServes();
});

test('a long-lived signal keeps no reference to finished tasks', async () => {
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 20 }, () => pool.run('page', { bytes: Buffer.from('echo') }, { signal })));
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('a lane whose documents hang holds no process that another lane could have', async () => {
  const shared = new ParserPool({ workers: 1, memoryMb: 192, deadlineMs: 60_000, log, workerFile });
  try {
    const hostile = Array.from({ length: 12 }, () =>
      shared.run('page', { bytes: Buffer.from('hang') }, { lane: 'hostile' }).catch(() => {}),
    );
    for (let n = 0; n < 3; n++)
      assert.equal(await shared.run('page', { bytes: Buffer.from('echo') }, { lane: 'other' }), 'echo');
    assert.deepEqual([shared.counts.busy, shared.counts.waiting], [1, 11]);
    await shared.close();
    await Promise.all(hostile);
  } finally {
    await shared.close();
  }
});

test('more waiting documents than the queue holds are refused with unavailable', async () => {
  const small = new ParserPool({ workers: 1, memoryMb: 192, deadlineMs: 3_000, log, workerFile, queueMax: 2 });
  const sent = Array.from({ length: 6 }, () => small.run('page', { bytes: Buffer.from('echo') }));
  const settled = await Promise.allSettled(sent);
  await small.close();
  const refused = settled.filter((one) => one.status === 'rejected').map((one) => String(one.reason));
  assert.ok(refused.length >= 3, String(refused.length));
  assert.ok(refused.every((reason) => reason.includes('Too many documents are waiting')));
});

test('a long text whose words are all different is prepared within the memory of one process', async () => {
  const small = new ParserPool({ workers: 1, memoryMb: 512, deadlineMs: 150_000, log });
  try {
    const text = Buffer.from(Array.from({ length: 400_000 }, (_, i) => `w${i * 7919} `).join(''));
    const input = {
      text,
      title: undefined,
      language: 'none',
      otherwise: 'none',
      embedIn: undefined,
      embedded: [],
    } as const;
    const { chunks, bundles } = await small.prepare(input);
    assert.equal(
      bundles.reduce((sum, { chunkCount }) => sum + chunkCount, 0),
      chunks.length,
    );
    assert.ok(bundles.length > 1);
  } finally {
    await small.close();
  }
});

test('a short document is read and prepared by one task as by two, and a long one is only read', async () => {
  const real = new ParserPool({ workers: 1, memoryMb: 512, deadlineMs: 150_000, log });
  const terms = { language: undefined, otherwise: 'english', embedIn: 'english', embedded: [] } as const;
  const read = (text: string) =>
    real.parse({ bytes: Buffer.from(text), filename: 'a.md' }, { prepare: { title: undefined, ...terms } });
  try {
    const short = await read('---\ntitle: Of bees\n---\n# Bees\n\nBees fly to the flowers.\n');
    const text = Buffer.from(short.markdown);
    assert.deepEqual(short.prepared, await real.prepare({ text, title: 'Of bees', ...terms }));
    const long = await read(`# Bees\n\n${'Bees fly to the flowers. '.repeat(10_000)}\n`);
    assert.equal(long.prepared, undefined);
  } finally {
    await real.close();
  }
});
