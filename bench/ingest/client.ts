import { createDocument } from './documents.ts';

/** Documents to send, by number, and how: in batches of this many, or alone over this many connections. */
export type Work = {
  baseUrl: string;
  key: string;
  source: string;
  from: number;
  count: number;
  way: { batchOf: number } | { connections: number };
};

/**
 * Sends documents in a process of its own, so that its processor time does not count as the server's. Tells the parent
 * when all are accepted.
 */
process.on('message', (work: Work) => {
  void send(work).then(() => process.send?.('accepted'));
});

async function send({ baseUrl, key, source, from, count, way }: Work): Promise<void> {
  const path = `${baseUrl}/api/v1/knowledge_sources/${source}`;
  const post = async (url: string, body: unknown): Promise<void> => {
    const headers = { 'x-api-key': key, 'content-type': 'application/json' };
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`POST ${url} returned ${response.status}: ${text}`);
  };
  const contentOf = (number: number) => {
    const data = Buffer.from(createDocument(number)).toString('base64');
    return { content: { data, data_encoding: 'base64', filename: 'document.md' } };
  };
  const numbers = Array.from({ length: count }, (_number, i) => from + i);
  if ('batchOf' in way) {
    for (let at = 0; at < count; at += way.batchOf) {
      const items = numbers.slice(at, at + way.batchOf).map(contentOf);
      await post(`${path}/ingest/batch`, { items, on_active: 'queue' });
    }
    return;
  }
  let next = 0;
  const connection = async () => {
    for (let at = next++; at < count; at = next++)
      await post(`${path}/ingest`, { ...contentOf(numbers[at] ?? 0), on_active: 'queue' });
  };
  await Promise.all(Array.from({ length: way.connections }, connection));
}
