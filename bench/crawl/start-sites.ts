import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { BenchSites } from '../crawl-refresh.ts';

/** Starts a process that serves the site to crawl, and the hosts that are slow. */
export async function startSites(pagesCount: number): Promise<{ sites: BenchSites; stop(): void }> {
  const child = fork(fileURLToPath(new URL('./site.ts', import.meta.url)), [String(pagesCount)], {
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const sites = await new Promise<BenchSites>((resolve) =>
    child.once('message', (message: BenchSites) => resolve(message)),
  );
  return { sites, stop: () => void child.kill() };
}
