import type { CallOptions, Connection } from './connection.ts';
import { automations as operations } from './generated/automations.ts';
import type { AutomationRun, InvokeAutomationRequest } from './generated/schema.ts';
import { hasEnded, runs } from './runs.ts';
import type { DataSchema, InputOf } from './schemas.ts';

/** Definitions of automations, and starting them. */
export const automations = (c: Connection) => {
  const own = operations(c);
  return {
    ...own,
    /**
     * Invokes an automation and waits until its run has ended. `input`, the automation's `input_schema`, gives the
     * payload its type.
     */
    async run<const S extends DataSchema>(
      automation: string,
      body: Omit<NonNullable<InvokeAutomationRequest>, 'payload'> & { payload?: InputOf<S>; input?: S } = {},
      options?: CallOptions,
    ): Promise<AutomationRun> {
      const { input: _, ...rest } = body;
      const run = await own.invoke(automation, rest as InvokeAutomationRequest, options);
      return hasEnded(run) ? run : runs(c).waitFor(run.id, options);
    },
  };
};
