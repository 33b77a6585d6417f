import { createHash } from 'node:crypto';
import type { Wait } from '../../http/streams/change-waits.ts';
import { type StreamHub, topicOf } from '../../http/streams/sse.ts';
import { invalidField } from '../../lib/errors.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import type * as runStore from '../runs/store.ts';
import { applyBatch, type Batch } from './batch.ts';
import { claimLost } from './claims.ts';
import type { ProgramJournal } from './journal.ts';
import { listServerEntries, type PageRow } from './pages.ts';
import { type PrepareDeps, prepareSteps } from './prepare.ts';
import { checkEntries } from './steps.ts';

type AppendDeps = PrepareDeps & { secrets: Secrets; streams: StreamHub; journal: ProgramJournal };

export type Appended = {
  sequence: number;
  ended: boolean;
  leaseUntil: Date | null;
  commandIds: Record<string, string>;
  entries: PageRow[];
};

/** How the holder of a claim writes the journal of its run. */
export function createAppending(deps: AppendDeps) {
  const { db, clock, secrets, streams, journal } = deps;

  async function append(run: runStore.RunRow, claim: string | undefined, batch: Batch): Promise<Appended> {
    if (claim === undefined) throw claimLost();
    checkEntries(batch.entries, clock.now());
    const digest = createHash('sha256')
      .update(JSON.stringify([batch.entries, batch.release]))
      .digest();
    const prepared = await prepareSteps(deps, run, batch.entries);
    const outcome = await journal.change(run, async (change) => {
      const written = await applyBatch(change, batch, { claim, digest, prepared });
      const commandIds = Object.fromEntries(
        batch.entries
          .filter(({ type }) => type === 'node_started')
          .map(({ node_id = '' }) => [node_id, change.state.steps.get(node_id)?.commandId ?? '']),
      );
      return { ...written, commandIds, sequence: change.state.sequence, leaseUntil: change.work.leaseUntil };
    });
    if (outcome === undefined) throw claimLost();
    const entries =
      outcome.sequence === batch.after_sequence ? [] : await listServerEntries(db, secrets, run, batch.after_sequence);
    return { ...outcome, entries };
  }

  return {
    /** Writes a batch of a worker. An empty one renews the claim, and may wait for what the server adds. */
    async append(
      run: runStore.RunRow,
      claim: string | undefined,
      batch: Batch,
      onOpen: (wait: Wait) => void,
    ): Promise<Appended> {
      const waitSeconds = batch.wait_seconds ?? 0;
      if (waitSeconds === 0) return append(run, claim, batch);
      if (batch.entries.length > 0 || batch.release !== undefined)
        throw invalidField('wait_seconds', 'is only for a request without entries and release');
      const wait = streams.waits.open(run.appId, [topicOf('run', run.appId, run.id)]);
      try {
        onOpen(wait);
        const endMs = performance.now() + waitSeconds * 1_000;
        for (;;) {
          const appended = await append(run, claim, batch);
          const leftMs = endMs - performance.now();
          if (appended.ended || appended.entries.length > 0 || leftMs <= 0 || wait.hasEnded) return appended;
          await wait.next(leftMs);
        }
      } finally {
        wait.close();
      }
    },
  };
}
