import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findCluster } from '../../src/db/embedded.ts';
import { canReach } from '../../src/db/postgres-account.ts';

/** The variable in which test/run.ts passes the place of a new cluster with every migration applied. */
export const clusterVariable = 'QUARRY_TEST_RUN_CLUSTER';

/**
 * Installs a new embedded database in a data directory without one. Creating it would take a second of processor
 * time.
 */
export function installCluster(dataDir: string): void {
  const source = process.env[clusterVariable];
  const place = join(dataDir, 'postgres');
  if (source === undefined || existsSync(place)) return;
  const { uid, gid } = statSync(source);
  // PostgreSQL chooses another place if its user cannot reach this one.
  if (process.getuid?.() === 0 && !canReach({ uid, gid }, dirname(dataDir))) return;
  mkdirSync(place, { recursive: true, mode: 0o700 });
  chownSync(place, uid, gid);
  copyCluster(source, join(place, 'cluster'));
}

/** Copies the cluster of a data directory whose PostgreSQL has stopped. */
export const copyClusterOf = (dataDir: string, target: string) => copyCluster(findCluster(dataDir), target);

function copyCluster(source: string, target: string): void {
  execFileSync('cp', ['-a', source, target]);
}
