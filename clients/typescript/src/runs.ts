import type { CallOptions, Connection } from './connection.ts';
import { runs as operations } from './generated/runs.ts';
import type { AutomationRun } from './generated/schema.ts';
import { waitByStream } from './wait.ts';

/** Runs of automations: reading, following and steering them. */
export const runs = (c: Connection) => {
  const own = operations(c);
  return {
    ...own,
    /** Waits until the run has ended: completed, failed or cancelled. */
    async waitFor(run: string, options?: CallOptions): Promise<AutomationRun> {
      const first = await own.get(run, options);
      if (hasEnded(first)) return first;
      return waitByStream(own.stream(run, options), () => own.get(run, options), hasEnded, options?.signal);
    },
  };
};

export function hasEnded({ status }: Pick<AutomationRun, 'status'>): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}
