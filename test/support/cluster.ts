import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findCluster } from '../../src/db/embedded.ts';
import { canReach } from '../../src/db/postgres-account.ts';

/** How test/run.ts tells its test files where a copy of a new cluster is, with every migration applied. */
export const clusterVariable = 'QUARRY_TEST_RUN_CLUSTER';

/** Places a new embedded database into a data directory that has none. To create one takes a second of processor time. */
export function installCluster(dataDir: string): void {
  const source = process.env[clusterVariable];
  const place = join(dataDir, 'postgres');
  if (source === undefined || existsSync(place)) return;
  const { uid, gid } = statSync(source);
  // PostgreSQL finds another place when its user cannot reach this one.
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
