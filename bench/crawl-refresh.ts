import { startBenchServer } from './support.ts';

/** What the site process serves: the site with ETags, hosts that take two seconds, and hosts that never respond. */
export type BenchSites = { origin: string; slow: string[]; hanging: string[] };

type Extraction = { id: string; state: string; progress: { done: number } };

export const slowMs = 2_000;

/** Measures a refresh of an unchanged site, many slow hosts at the same time, and a crawl beside hosts that hang. */
export async function measureWaiting(sites: BenchSites, pagesCount: number): Promise<void> {
  const concurrency = process.env.CONCURRENCY ?? '8';
  const server = await startBenchServer({
    QUARRY_FETCH_ALLOW: '127.0.0.1',
    QUARRY_CRAWL_CONCURRENCY: concurrency,
    QUARRY_CRAWL_HOST_CONCURRENCY: concurrency,
  });
  try {
    const pull = async (source: string): Promise<{ seconds: number; unchanged: number }> => {
      const startedAt = performance.now();
      const ingestion = await server.post(`/api/v1/knowledge_sources/${source}/ingest`, { pull: true });
      const { stats } = await server.finished(ingestion);
      return { seconds: (performance.now() - startedAt) / 1_000, unchanged: Number(stats?.unchanged) };
    };
    const source = await server.makeSource('scrape/site', { url: `${sites.origin}/`, max_pages: pagesCount });
    report('pull', pagesCount, (await pull(source)).seconds);
    for (let round = 0; round < 3; round++) {
      const refresh = await pull(source);
      if (refresh.unchanged !== pagesCount) throw new Error(`${refresh.unchanged} pages were unchanged`);
      report('refresh', pagesCount, refresh.seconds);
    }

    const other = await server.otherApp();
    const links = async (urls: string[], key?: string): Promise<Extraction[]> =>
      Promise.all(
        urls.map((url) =>
          server.post<Extraction>('/api/v1/extractions', { destination_kind: 'storage', url, mode: 'link' }, key),
        ),
      );
    const fast = await timed(async () => server.ended(await links(sites.slow.map((origin) => `${origin}/now`))));
    const slow = await timed(async () => server.ended(await links(sites.slow)));
    console.log(
      `${sites.slow.length} links to as many hosts: ${fast.toFixed(1)} s; when each host takes ${slowMs} ms: ${slow.toFixed(1)} s`,
    );

    const crawl = () =>
      timed(async () => {
        const body = { destination_kind: 'storage', url: `${sites.origin}/`, mode: 'site', max_pages: 300 };
        await server.ended([await server.post<Extraction>('/api/v1/extractions', body)]);
      });
    await crawl();
    const alone = [await crawl(), await crawl(), await crawl()];
    await links(sites.hanging, other);
    const beside = [await crawl(), await crawl(), await crawl()];
    const ratio = Math.min(...beside) / Math.min(...alone);
    const list = (times: number[]) => times.map((seconds) => seconds.toFixed(2)).join(', ');
    console.log(
      `a crawl of 300 pages: ${list(alone)} s; beside ${sites.hanging.length} hanging hosts ${list(beside)} s; ratio ${ratio.toFixed(2)} (wanted: 1.2)`,
    );
  } finally {
    await server.close();
  }
}

function report(name: string, pages: number, seconds: number): void {
  console.log(
    `${name.padEnd(8)} ${(pages / seconds).toFixed(1).padStart(7)} pages/s (${pages} pages, ${seconds.toFixed(1)} s)`,
  );
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1_000;
}
