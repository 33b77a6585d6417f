/**
 * Ingestion end to end: Markdown documents of 10 KB (1,000, or the number given), pushed in batches of 100 into one
 * source, from the first request to the last `succeeded`. Beside it the bare minimum: the same texts written to one
 * table by the same PostgreSQL, a transaction each.
 */

import { readMemory, readTimes } from './processes.ts';
import { keepRatio } from './ratios.ts';
import { startBenchServer } from './support.ts';

const count = Number(process.argv[2] ?? 1_000);
const pollMs = 100;
const syllables = ['ba', 'con', 'de', 'fer', 'gra', 'in', 'lo', 'men', 'na', 'per', 'ri', 'so', 'ter', 'u', 'ver'];
const words = Array.from({ length: 20_000 }, (_word, i) => {
  const parts: string[] = [];
  for (let rest = i + 15; rest > 0; rest = Math.floor(rest / 15)) parts.push(syllables[rest % 15] ?? '');
  return parts.join('');
});

/** About 10 KB with headings, paragraphs, a list and a table. Words are as frequent as in natural language. */
function createDocument(number: number): string {
  const word = () => words[Math.floor(words.length ** Math.random())] ?? 'word';
  const sentence = () => `${Array.from({ length: 12 }, word).join(' ')}.`;
  const lines = [`# Document ${number}`, ''];
  while (lines.join('\n').length < 10_000) {
    lines.push(`## ${word()} ${word()}`, '', Array.from({ length: 6 }, sentence).join(' '), '');
    lines.push(...Array.from({ length: 4 }, () => `- ${sentence()}`), '');
  }
  return lines.join('\n').slice(0, 10_240);
}

const server = await startBenchServer();
try {
  const documents = Array.from({ length: count }, (_document, i) => createDocument(i));
  const source = await server.makeSource();
  const rss: number[] = [];
  const start = performance.now();
  const before = readTimes();
  for (let from = 0; from < count; from += 100) {
    const items = documents.slice(from, from + 100).map((data) => ({
      content: { data: Buffer.from(data).toString('base64'), data_encoding: 'base64', filename: 'document.md' },
    }));
    // Rarely, because the server's time for each of these requests would count as that of the documents.
    await server.finished(await server.post(`/api/v1/knowledge_sources/${source}/ingest/batch`, { items }), pollMs);
    if (from % Math.max(100, count / 20) < 100) rss.push(process.memoryUsage.rss() / 2 ** 20);
  }
  const seconds = (performance.now() - start) / 1000;
  const after = readTimes();
  const [row] = await server.db<{ documents: number; chunks: number }[]>`
    select count(*) as documents, sum(chunk_count) as chunks from knowledge_documents`;
  console.log(
    `ingested ${row?.documents} documents (${row?.chunks} chunks) in ${seconds.toFixed(1)} s: ${(count / seconds).toFixed(1)} documents/s`,
  );
  const each = (part: keyof typeof after) => (((after[part] - before[part]) * 1_000) / count).toFixed(1);
  console.log(
    `processor time a document, ms: server ${each('server')}, PostgreSQL ${each('postgres')}, parsers ${each('parsers')}, learning ${each('learning')}`,
  );
  console.log(`memory of the server while it ingests, MiB: ${rss.map((mib) => mib.toFixed(0)).join(' ')}`);
  const memory = Object.entries(readMemory()).map(([part, mib]) => `${part} ${mib.toFixed(0)}`);
  console.log(`memory of all processes at the end, MiB: ${memory.join(', ')}`);

  await server.db`create table bare_documents (id int primary key, content text)`;
  const bareStart = performance.now();
  for (const [i, text] of documents.entries()) await server.db`insert into bare_documents values (${i}, ${text})`;
  const bareSeconds = (performance.now() - bareStart) / 1000;
  keepRatio('ingest', bareSeconds / seconds);
  console.log(
    `bare inserts: ${(count / bareSeconds).toFixed(0)} documents/s, ratio ${(bareSeconds / seconds).toFixed(3)}`,
  );
} finally {
  await server.close();
}
