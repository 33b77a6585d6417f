/**
 * Ingestion end to end into one source: Markdown documents of 10 KB, from the first request to the last document in the
 * index, pushed in batches of 100 and then one by one over 32 connections. Beside it the bare minimum: the same texts
 * written to one table by the same PostgreSQL, a transaction each.
 * The time of each process is that of the whole round, the start of processes left out. `ended` is that of parsers and
 * learners that have ended.
 *   --documents 1000       how many each way
 *   --only batches|pushes  one of the two ways
 *   --connections 32       those of the pushes
 */

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Work } from './ingest/client.ts';
import { createDocument } from './ingest/documents.ts';
import { readMemory, readTimes } from './processes.ts';
import { keepRatio } from './ratios.ts';
import { startBenchServer } from './support.ts';

const { values } = parseArgs({
  options: {
    documents: { type: 'string', default: '1000' },
    only: { type: 'string' },
    connections: { type: 'string', default: '32' },
  },
});
const count = Number(values.documents);
const connections = Number(values.connections);
/** What takes the time of a document; the client is not one of them. */
const parts = ['server', 'parsers', 'postgres', 'learning', 'ended'] as const;
/** Documents between two readings of the time and the memory. */
const stretch = Math.max(100, Math.ceil(count / 10));
const pollMs = 100;
const warmUpCount = 100;

const server = await startBenchServer();
const client = fork(fileURLToPath(new URL('./ingest/client.ts', import.meta.url)));
const clientEnded = new Promise<never>((_resolve, reject) => {
  client.once('exit', (code) => reject(new Error(`The client ended with ${code}.`)));
});
clientEnded.catch(() => {});
try {
  // The processes compile their code first, which would otherwise count as time of the first documents.
  await send({ source: await server.makeSource(), way: { batchOf: warmUpCount }, from: 0, count: warmUpCount });
  const ways: Record<string, Work['way']> = { batches: { batchOf: 100 }, pushes: { connections } };
  const chosen = Object.entries(ways).filter(([name]) => values.only === undefined || name === values.only);
  const seconds: Record<string, number> = {};
  for (const [i, [name, way]] of chosen.entries()) seconds[name] = await measure(name, way, warmUpCount + i * count);
  const bare = await measureBare();
  for (const [name, taken] of Object.entries(seconds)) {
    keepRatio(name === 'batches' ? 'ingest' : 'ingest, one by one', bare / taken);
    console.log(
      `bare inserts: ${(count / bare).toFixed(0)} documents/s, ratio of ${name} ${(bare / taken).toFixed(3)}`,
    );
  }
} finally {
  client.kill();
  await server.close();
}

async function measure(name: string, way: Work['way'], from: number): Promise<number> {
  const source = await server.makeSource();
  const before = { times: readTimes(), database: await readDatabase() };
  const start = performance.now();
  for (let done = 0; done < count; done += stretch) {
    const some = Math.min(stretch, count - done);
    const earlier = readSum();
    await send({ source, way, from: from + done, count: some });
    const eachMs = ((readSum() - earlier) * 1_000) / some;
    const mib = process.memoryUsage.rss() / 2 ** 20;
    console.log(`after ${done + some}: ${eachMs.toFixed(1)} ms of processor time each, server ${mib.toFixed(0)} MiB`);
  }
  const seconds = (performance.now() - start) / 1_000;
  const after = { times: readTimes(), database: await readDatabase() };
  console.log(`${count} documents as ${name}: ${seconds.toFixed(1)} s, ${(count / seconds).toFixed(1)} documents/s`);
  const each = (part: keyof typeof after.times) => ((after.times[part] - before.times[part]) * 1_000) / count;
  const sum = parts.reduce((total, part) => total + each(part), 0);
  const shares = parts.map((part) => `${part} ${each(part).toFixed(1)}`).join(', ');
  console.log(`processor time of a document: ${sum.toFixed(1)} ms (${shares}), client ${each('client').toFixed(1)}`);
  console.log(`two processors have room for ${(2_000 / sum).toFixed(0)} documents/s`);
  const database = (part: keyof typeof after.database) => (after.database[part] - before.database[part]) / count;
  console.log(
    `a document takes ${database('commits').toFixed(2)} transactions and ${(database('walBytes') / 1024).toFixed(1)} KiB of WAL`,
  );
  const memory = Object.entries(readMemory()).map(([part, mib]) => `${part} ${mib.toFixed(0)}`);
  console.log(`memory of all processes, MiB: ${memory.join(', ')}`);
  return seconds;
}

/** The processor seconds so far of all processes but the client. */
function readSum(): number {
  const times = readTimes();
  return parts.reduce((total, part) => total + times[part], 0);
}

/** Sends documents, and resolves when all are in the index. */
async function send(work: Omit<Work, 'baseUrl' | 'key'>): Promise<void> {
  const sent = new Promise((resolve) => client.once('message', resolve));
  client.send({ baseUrl: server.baseUrl, key: server.app.secretKey, ...work } satisfies Work);
  await Promise.race([sent, clientEnded]);
  for (;;) {
    const [row] = await server.db<{ waiting: number; failed: number }[]>`
      select count(*) filter (where status not in ('succeeded', 'failed'))::int as waiting,
        count(*) filter (where status = 'failed')::int as failed
      from knowledge_ingestions`;
    if (row?.failed !== 0) throw new Error(`${row?.failed} ingestions failed.`);
    if (row.waiting === 0) return;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

async function readDatabase(): Promise<{ commits: number; walBytes: number }> {
  // The counts of a connection become visible when it has been idle for a while.
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const [row] = await server.db<{ commits: number; walBytes: number }[]>`
    select sum(xact_commit)::float8 as commits, (select wal_bytes::float8 from pg_stat_wal) as wal_bytes
    from pg_stat_database`;
  return { commits: row?.commits ?? 0, walBytes: row?.walBytes ?? 0 };
}

async function measureBare(): Promise<number> {
  await server.db`create table bare_documents (id int primary key, content text)`;
  const documents = Array.from({ length: count }, (_document, i) => createDocument(i));
  const start = performance.now();
  for (const [i, text] of documents.entries()) await server.db`insert into bare_documents values (${i}, ${text})`;
  return (performance.now() - start) / 1_000;
}
