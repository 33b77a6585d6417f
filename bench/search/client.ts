/** Searches from a separate process, so that neither its work nor its memory is the server's. */
type Task = { bodies: Record<string, unknown>[]; concurrency: number };

const [url = '', key = ''] = process.argv.slice(2);

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

process.on('message', async ({ bodies, concurrency }: Task) => {
  const left = [...bodies];
  const times: number[] = [];
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (let body = left.pop(); body !== undefined; body = left.pop()) times.push(await search(body));
    }),
  );
  process.send?.(times);
});
