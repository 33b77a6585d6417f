import type { Database, Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { invalidField } from '../lib/errors.ts';
import type { Scope } from '../tenancy/caller.ts';
import { type Measure, measures, noLimit } from '../tenancy/quotas.ts';
import type { QuotasInput } from './schema.ts';
import * as store from './store.ts';

export type UsageService = ReturnType<typeof createUsageService>;
type Usage = Record<Measure, { used: number; limit: number | null }> & { resetsAt: Date };

const dayMs = 24 * 60 * 60 * 1_000;

/** Reads the usage and sets the quotas of apps. */
export function createUsageService({ db, clock }: { db: Database; clock: Clock }) {
  return {
    async get(scope: Scope): Promise<Usage> {
      const rows = await store.readUsage(db, scope);
      const of = (measure: Measure) => {
        const row = rows.find((each) => each.measure === measure);
        const bound = row?.bound ?? null;
        return { used: Math.max(0, row?.used ?? 0), limit: bound === noLimit ? null : bound };
      };
      const today = Math.floor(clock.now().getTime() / dayMs);
      return {
        file_bytes: of('file_bytes'),
        documents: of('documents'),
        pages: of('pages'),
        tokens: of('tokens'),
        sandboxes: of('sandboxes'),
        resetsAt: new Date((today + 1) * dayMs),
      };
    },
  };
}

/** Sets an app's own limits. They may be lower than the operator's, never higher: 422 on the member. */
export async function setOwnLimits(tx: Db, appId: string, quotas: QuotasInput): Promise<void> {
  for (const measure of measures) {
    const bound = quotas[measure];
    if (bound === undefined) continue;
    const most = (await store.findOperatorLimit(tx, appId, measure)) ?? noLimit;
    if (bound !== null && bound > most)
      throw invalidField(`quotas.${measure}`, `must be at most ${most}, the limit set by the operator of this server`);
    await store.setOwnLimit(tx, appId, measure, bound);
  }
}
