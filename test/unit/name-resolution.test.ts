import assert from 'node:assert/strict';
import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createFetcher } from '../../src/content/fetch/guarded-fetch.ts';
import { createSystemResolver, resolveFor } from '../../src/content/fetch/resolver.ts';

/* A name server of its own: names with "hang" get no response, "none" do not exist, all others are at one address. */

const socket = createSocket('udp4');
const asked: string[] = [];
let onAsked = (): void => {};
let servers: string[];
let directory: string;

before(async () => {
  socket.on('message', (query: Buffer, from: RemoteInfo) => {
    const labels: string[] = [];
    let at = 12;
    for (let size = query[at] ?? 0; size > 0; at += size + 1, size = query[at] ?? 0)
      labels.push(query.toString('latin1', at + 1, at + 1 + size));
    const name = labels.join('.');
    const type = query.readUInt16BE(at + 1);
    asked.push(name);
    onAsked();
    if (name.includes('hang')) return;
    const answers = type === 1 && !name.includes('none') ? 1 : 0;
    const head = Buffer.from(query.subarray(0, 12));
    head.writeUInt16BE(name.includes('none') ? 0x8183 : 0x8180, 2);
    for (const [i, count] of [1, answers, 0, 0].entries()) head.writeUInt16BE(count, 4 + 2 * i);
    const answer = Buffer.from('c00c00010001000000000004c6336407', 'hex');
    socket.send(
      Buffer.concat([head, query.subarray(12, at + 5), ...(answers ? [answer] : [])]),
      from.port,
      from.address,
    );
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  servers = [`127.0.0.1:${socket.address().port}`];
  directory = await mkdtemp(join(tmpdir(), 'quarry-hosts-'));
});
after(async () => {
  socket.close();
  await rm(directory, { recursive: true });
});

function waitForAsked(isEnough: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    onAsked = () => isEnough() && resolve();
    onAsked();
  });
}

test('names that hang keep neither the names of another app nor files waiting', async () => {
  const resolve = createSystemResolver({
    ...{ servers, lookupMs: 120_000, lookup: () => assert.fail('a thread resolves a name') },
  });
  const leaving = new AbortController();
  let ended = 0;
  const hanging = Array.from({ length: 200 }, (_, n) =>
    resolveFor('first', () => resolve(`hang${n}.test`, leaving.signal)).finally(() => (ended += 1)),
  );
  const outcomes = Promise.allSettled(hanging);
  const open = () => new Set(asked.filter((name) => name.startsWith('hang'))).size;
  await waitForAsked(() => open() >= 50);
  assert.deepEqual(await resolveFor('second', () => resolve('fast.test')), ['198.51.100.7']);
  assert.match(await readFile(import.meta.filename, 'utf8'), /keep neither/);
  assert.equal(ended, 0);
  assert.ok(open() <= 64, `${open()} lookups of one app`);
  leaving.abort();
  assert.ok((await outcomes).every(({ status }) => status === 'rejected'));
});

test('names that only the system may know are resolved on one thread for each app', async () => {
  const started: string[] = [];
  const gate = Promise.withResolvers<string[]>();
  let onStart = (): void => {};
  const resolve = createSystemResolver({
    servers,
    lookup: (host) => {
      started.push(host);
      onStart();
      return host.startsWith('slow') ? gate.promise : Promise.resolve(['198.51.100.8']);
    },
  });
  const begun = new Promise<void>((done) => {
    onStart = done;
  });
  const fetcher = createFetcher({ resolve, connectTimeoutMs: 120_000 });
  // 198.51.100.0/24 is not on the public internet.
  const fetch = (lane: string, host: string) =>
    assert.rejects(fetcher.fetch(`http://${host}/`, { lane, timeoutMs: 120_000 }), { code: 'unsafe_address' });
  try {
    const slow = Array.from({ length: 50 }, (_, n) => fetch('first', `slow${n}.none.test`));
    await begun;
    await fetch('second', 'quick.none.test');
    assert.equal(started.filter((host) => host.startsWith('slow')).length, 1);
    gate.resolve(['198.51.100.9']);
    await Promise.all(slow);
    assert.equal(started.length, 51);
  } finally {
    await fetcher.close();
  }
});

test('the hosts file comes before the name servers, and is read again when it has changed', async () => {
  const hostsFile = join(directory, 'hosts');
  const resolve = createSystemResolver({ servers, hostsFile, lookup: () => Promise.reject(new Error('unknown')) });
  assert.deepEqual(await resolve('fast.test'), ['198.51.100.7']);
  await writeFile(hostsFile, '# ours\n10.1.2.3\tFast.test other # here\n::1 fast.test\nbroken fast.test\n');
  assert.deepEqual(await resolve('FAST.test'), ['10.1.2.3', '::1']);
  assert.deepEqual(await resolve('other'), ['10.1.2.3']);
});

test('name servers that do not respond end a lookup in time, and the system does not ask them again', async () => {
  const resolve = createSystemResolver({
    ...{ servers, lookupMs: 30, lookup: () => assert.fail('a thread resolves a name') },
  });
  await assert.rejects(resolve('hang.late.test'), { code: /^E(TIMEOUT|CANCELLED)$/ });
});

test('what the name servers return is checked before a connection is made', async () => {
  const fetcher = createFetcher({ resolve: createSystemResolver({ servers }) });
  try {
    await assert.rejects(fetcher.fetch('http://fast.test/', { lane: 'first' }), { code: 'unsafe_address' });
  } finally {
    await fetcher.close();
  }
});

test('a name whose servers hang fails within the time to connect, and its lookup ends', async () => {
  const ended = Promise.withResolvers<void>();
  const fetcher = createFetcher({
    connectTimeoutMs: 50,
    resolve: (_host, signal) =>
      new Promise((_resolve, reject) =>
        signal?.addEventListener('abort', () => {
          reject(signal.reason);
          ended.resolve();
        }),
      ),
  });
  try {
    await assert.rejects(fetcher.fetch('http://silent.test/', { lane: 'first' }), { code: 'dns_failed' });
    await ended.promise;
  } finally {
    await fetcher.close();
  }
});
