import type { Connection } from './connection.ts';
import { QuarryError } from './errors.ts';
import type { ClaimedWork } from './generated/schema.ts';
import type { DataSchema, InputOf } from './schemas.ts';
import { pause } from './wait.ts';
import { Execution, workerClaim } from './workflow-execution.ts';
import { Run, type Workflow } from './workflow-run.ts';

export { WorkflowError } from './workflow-execution.ts';
export {
  type Answer,
  type ApproveOptions,
  type Run,
  StepError,
  type StepOptions,
  type StepTools,
  type Workflow,
} from './workflow-run.ts';

/**
 * Defines a workflow. `input`, the automation's `input_schema`, gives the input its type. The function must do everything
 * that has an effect, takes time or differs from run to run within steps: it is executed again from the beginning whenever
 * the run continues.
 */
export function workflow<const S extends DataSchema>(
  name: string,
  _options: { input?: S },
  body: (run: Run, input: InputOf<S>) => Promise<unknown>,
): Workflow {
  return { name, body };
}

export type WorkerOptions = {
  /** The version of your code. A run that one version does not fit waits for another. Default `1`. */
  codeVersion?: string;
  /** Runs that are executed at the same time. Default 10. */
  concurrency?: number;
  /** After a crash, another worker continues a run this much later. Default 30. */
  leaseSeconds?: number;
  /** What could not be reported to the server, such as a lost connection. By default it is ignored and tried again. */
  onError?: (error: unknown) => void;
};

const claimSeconds = 20;
const pauseMsMax = 15_000;

/** Executes the runs of these workflows. */
export function worker(
  { connection: c }: { connection: Connection },
  workflows: readonly Workflow[],
  options: WorkerOptions = {},
) {
  const { codeVersion = '1', concurrency = 10, leaseSeconds = 30, onError = () => {} } = options;
  const byName = new Map(workflows.map((one) => [one.name, one]));
  /** The workflow of each automation that has been seen, by the automation's id. */
  const byId = new Map<string, Workflow>();
  const stopping = new AbortController();
  const active = new Set<Promise<void>>();
  let loop: Promise<void> | undefined;

  const claim = () =>
    c.send<ClaimedWork | undefined>(
      'POST',
      '/api/v1/automation_work/claim',
      {
        automations: [...byName.keys()],
        code_version: codeVersion,
        lease_seconds: leaseSeconds,
        wait_seconds: claimSeconds,
      },
      { signal: stopping.signal, retries: 0 },
    );

  async function workflowOf(automation: string): Promise<Workflow | undefined> {
    for (const one of byId.has(automation) ? [] : workflows) {
      const { id } = await c.get<{ id: string }>(`/api/v1/automations/${encodeURIComponent(one.name)}`);
      byId.set(id, one);
    }
    return byId.get(automation);
  }

  async function execute(work: ClaimedWork): Promise<void> {
    try {
      const found = await workflowOf(work.run.automation);
      if (!found) return;
      const execution = new Execution(workerClaim(c, work), work, leaseSeconds, stopping.signal);
      await execution.execute((input) => found.body(new Run(execution, ''), input as never));
    } catch (error) {
      // The run is continued when the claim has expired.
      onError(error);
    }
  }

  async function work(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted; ) {
      try {
        if (active.size >= concurrency) await Promise.race(active);
        const claimed = await claim();
        failures = 0;
        if (!claimed) continue;
        const done: Promise<void> = execute(claimed).finally(() => active.delete(done));
        active.add(done);
        // The run's first entries go before the next claim.
        await pause(0, stopping.signal);
      } catch (error) {
        if (stopping.signal.aborted) break;
        onError(error);
        const waitMs = error instanceof QuarryError ? error.retryAfterMs : undefined;
        await pause(waitMs ?? Math.min(pauseMsMax, 250 * 2 ** failures++), stopping.signal).catch(() => {});
      }
    }
    await Promise.all(active);
  }

  return {
    /** Executes runs until `stop` is called. */
    start: (): Promise<void> => (loop ??= work()),
    /** Claims no more runs, aborts the steps in progress, and hands their runs back. Resolves when that is done. */
    async stop(): Promise<void> {
      stopping.abort(new Error('The worker stops.'));
      await loop;
    },
  };
}
