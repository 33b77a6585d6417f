/** Searches from a separate thread, like a client in another process, so that its work is not the server's. */
import { parentPort, workerData } from 'node:worker_threads';

type Task = { bodies: Record<string, unknown>[]; concurrency: number };

const { url, key } = workerData as { url: string; key: string };

async function search(body: Record<string, unknown>): Promise<number> {
  const start = performance.now();
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`A search returned ${response.status}: ${text}`);
  return performance.now() - start;
}

parentPort?.on('message', async ({ bodies, concurrency }: Task) => {
  const left = [...bodies];
  const times: number[] = [];
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (let body = left.pop(); body !== undefined; body = left.pop()) times.push(await search(body));
    }),
  );
  parentPort?.postMessage(times);
});
