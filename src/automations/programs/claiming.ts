import { type Database, isInOpenUnit } from '../../db/database.ts';
import type { WaitReader } from '../../http/streams/change-waits.ts';
import { type StreamHub, topicOf } from '../../http/streams/sse.ts';
import type { Clock } from '../../lib/clock.ts';
import { found } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import type { Secrets } from '../../tenancy/secrets.ts';
import { listNamed } from '../definitions/find.ts';
import * as runStore from '../runs/store.ts';
import { claimRun, type HeldClaim } from './claims.ts';
import { type ProgramJournal, type RunKey, readyTopic } from './journal.ts';
import { type JournalPart, readPart } from './read.ts';
import * as store from './store.ts';

type ClaimingDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  streams: StreamHub;
  journal: ProgramJournal;
};

type Claim = { automations: readonly string[]; code_version: string; lease_seconds: number };
type Claimed = JournalPart & HeldClaim & { run: runStore.RunRow };

const candidatesCount = 4;
const lookMsMin = 20;

/** How workers get runs: the one that has been ready for longest, or the next that becomes ready. */
export function createClaiming(deps: ClaimingDeps) {
  const { db, clock, streams, journal } = deps;
  /** Runs that requests of this process are claiming, so that others try the next ones. */
  const claiming = new Set<string>();

  /** Claims the run that has been ready for longest. */
  async function tryClaim(appId: string, ids: readonly string[], input: Claim): Promise<Claimed | undefined> {
    const full = new Set<string>();
    const lost = new Set<string>();
    for (;;) {
      const wanted = {
        automations: ids,
        full: [...full],
        codeVersion: input.code_version,
        skip: [...claiming, ...lost],
      };
      const candidates = await store.findReadyRuns(db, { appId }, wanted, clock.now(), candidatesCount);
      const next = candidates.find(({ runId }) => !claiming.has(runId));
      if (next === undefined) return undefined;
      const key = { appId, id: next.runId, automationId: next.automationId };
      claiming.add(key.id);
      try {
        const outcome = await journal.change(key, (change) => claimRun(change, input));
        if (outcome === 'full') full.add(next.automationId);
        else if (outcome === 'lost' || outcome === undefined) lost.add(next.runId);
        else return await describe(deps, key, outcome);
      } finally {
        claiming.delete(key.id);
      }
    }
  }

  return {
    /** Claims a run, and waits for one for up to `waitSeconds`. Undefined if there is none, or the wait has ended. */
    async claim(caller: Caller, input: Claim, waitSeconds: number, reader: WaitReader): Promise<Claimed | undefined> {
      const automations = await listNamed(db, caller, input.automations);
      const ids = [...new Set(automations.map(({ id }) => id))];
      const { appId } = caller;
      if (waitSeconds === 0) return tryClaim(appId, ids, input);
      const wait = streams.waits.open(
        appId,
        ids.map((id) => topicOf(readyTopic, appId, id)),
        reader,
      );
      try {
        const endMs = performance.now() + waitSeconds * 1_000;
        for (;;) {
          if (wait.hasEnded) return undefined;
          const claimed = await tryClaim(appId, ids, input);
          const leftMs = endMs - performance.now();
          // A repeatable request would keep locked what its look has found.
          if (claimed !== undefined || leftMs <= 0 || isInOpenUnit()) return claimed;
          const now = clock.now();
          const expiry = await store.findNextExpiry(db, { appId }, ids, now);
          const expiryMs = expiry === undefined ? leftMs : Math.max(lookMsMin, expiry.getTime() - now.getTime());
          await wait.next(Math.min(leftMs, expiryMs));
        }
      } finally {
        wait.close();
      }
    },
  };
}

async function describe({ db, secrets }: ClaimingDeps, key: RunKey, held: HeldClaim): Promise<Claimed> {
  const [run, part] = await Promise.all([
    runStore.findRun(db, key.appId, key.id),
    readPart(db, secrets, { ...key, sequence: held.sequence }, 0),
  ]);
  return { run: found(run), ...held, ...part };
}
