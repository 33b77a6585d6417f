import { mkdirSync, realpathSync, rmSync } from 'node:fs';
import { openDatabase } from '../../src/db/database.ts';
import { type EmbeddedPostgres, findCluster, startEmbeddedPostgres } from '../../src/db/embedded.ts';
import { findPostmaster } from '../../src/db/postmaster.ts';
import { createLogger } from '../../src/lib/log.ts';
import { installCluster } from './cluster.ts';
import { keepFull, mountSmall, unmount } from './full-disk.ts';
import { childrenOf, signal } from './processes.ts';
import { openTcpProxy } from './tcp-proxy.ts';

/** What can happen to a database. Each returns a function that ends it. */
type Trouble = () => Promise<() => Promise<void>>;

/** A PostgreSQL with every migration applied, which is not the one of the test run. */
type FragileDatabase = {
  url: string;
  troubles: Record<'killed' | 'paused' | 'read-only', Trouble>;
  /** Fills its disk, if it is small. */
  fill: Trouble;
  close(): Promise<void>;
};

/** @param options.isSmall gives it a small disk of its own, which needs root. */
export async function startFragileDatabase(dataDir: string, { isSmall = false } = {}): Promise<FragileDatabase> {
  mkdirSync(dataDir, { mode: 0o755 });
  if (isSmall && !mountSmall(dataDir, '400m')) throw new Error('This process may not mount a file system.');
  installCluster(dataDir);
  const start = () => startEmbeddedPostgres({ dataDir, log: createLogger('silent'), settings });
  let running: EmbeddedPostgres = await start();
  const proxy = await openTcpProxy(running.address);
  const findPid = () => findPostmaster(findCluster(realpathSync(dataDir)))?.pid ?? 0;
  const restart = async () => {
    await running.stop();
    running = await start();
  };

  async function setReadOnly(isReadOnly: boolean): Promise<void> {
    const db = openDatabase(running.address, { poolSize: 1, applicationName: 'quarry-test' });
    const session = await db.reserve();
    await session.runScript('set default_transaction_read_only = off');
    await session.runScript(`alter system set default_transaction_read_only = ${isReadOnly ? 'on' : 'off'}`);
    await session`select pg_reload_conf()`;
    session.release();
    await db.end();
  }

  return {
    url: proxy.url,
    troubles: {
      async killed() {
        signal(findPid(), 'SIGKILL');
        await running.ended;
        return restart;
      },
      async paused() {
        const postmaster = findPid();
        signal(postmaster, 'SIGSTOP');
        const processes = [postmaster, ...childrenOf(postmaster)];
        for (const pid of processes) signal(pid, 'SIGSTOP');
        return async () => {
          for (const pid of processes) signal(pid, 'SIGCONT');
        };
      },
      async 'read-only'() {
        await setReadOnly(true);
        return () => setReadOnly(false);
      },
    },
    async fill() {
      const empty = await keepFull(dataDir);
      return async () => {
        await empty();
        // It may have ended, because it could not write its log.
        if (findPid() === 0) await restart();
      };
    },
    async close() {
      await proxy.close();
      await running.stop();
      if (isSmall) unmount(dataDir);
      rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Killed processes lose nothing that was written, because the machine itself keeps running. */
const settings = { fsync: 'off' };
