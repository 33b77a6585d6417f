import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { startOwnServer } from '../peers/own-server.ts';
import { cpuOfTree } from '../processes.ts';

export type CrawlResult = { seconds: number; cpuSeconds: number; pages: number };
export type Crawl = { origin: string; pagesCount: number; concurrency: number };

export async function crawlWithQuarry({ origin, pagesCount, concurrency }: Crawl): Promise<CrawlResult> {
  const server = await startOwnServer({
    QUARRY_FETCH_ALLOW: '127.0.0.1',
    QUARRY_CRAWL_CONCURRENCY: String(concurrency),
    QUARRY_CRAWL_HOST_CONCURRENCY: String(concurrency),
  });
  try {
    await waitUntilIdle(server.pids);
    const idleMb = residentMb(server.pid);
    let peakMb = idleMb;
    const watch = setInterval(() => {
      peakMb = Math.max(peakMb, residentMb(server.pid));
    }, 250);
    const cpuBefore = cpuOfTree(server.pids);
    const startedAt = performance.now();
    const { id } = await server.post<{ id: string }>('/extractions', {
      destination_kind: 'storage',
      url: `${origin}/`,
      mode: 'site',
      max_pages: pagesCount,
      sitemap: 'skip',
    });
    const stream = await fetch(`${server.origin}/api/v1/extractions/${id}/stream`, { headers: server.headers });
    const last = (await stream.text())
      .trim()
      .split('\n\n')
      .findLast((event) => event.startsWith('id:'));
    const seconds = (performance.now() - startedAt) / 1_000;
    const cpuSeconds = cpuOfTree(server.pids) - cpuBefore;
    clearInterval(watch);
    const { output_count: pages } = JSON.parse(last?.split('data: ')[1] ?? '{}') as { output_count: number };
    console.error(
      `quarry   server memory: ${idleMb.toFixed(0)} MiB idle, ${peakMb.toFixed(0)} MiB at most while crawling`,
    );
    return { seconds, cpuSeconds, pages };
  } finally {
    await server.stop();
  }
}

/** The time of crawlee begins when its code is loaded. A server that has just started is still loading that of its parser. */
async function waitUntilIdle(pids: number[]): Promise<void> {
  for (let before = cpuOfTree(pids); ; ) {
    await wait(500);
    const now = cpuOfTree(pids);
    if (now - before < 0.03) return;
    before = now;
  }
}

function residentMb(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes ?? 0) / 1_024;
}
