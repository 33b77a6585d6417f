import type { Database } from '../../db/database.ts';
import { AppError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { CallOrigin } from '../../llm/origin.ts';
import type { Generated, GenerationInput, Llm, TokenBudget } from '../../llm/service.ts';
import { holdTokens } from '../../tenancy/quotas.ts';
import { settleRunTokens, useRunTokens } from '../runs/generation-store.ts';
import { OutputWriter } from '../runs/output.ts';
import type { RunRow } from '../runs/store.ts';
import type { GenerationAttempt } from './kind.ts';

export type GenerationDeps = {
  db: Database;
  log: Logger;
  llm: Llm;
  /** Tokens of one run; 0 for no limit. */
  runTokensMax: number;
};

/** Calls the language model for a node, within the budgets of its run and app. Readers see the text as it arrives. */
export async function generateForRun(
  deps: GenerationDeps,
  run: RunRow,
  attempt: GenerationAttempt,
  input: GenerationInput,
): Promise<Generated> {
  const writer = new OutputWriter(deps, run, attempt);
  let hasStarted = false;
  try {
    return await deps.llm.generate(input, {
      ...{ lane: run.appId, budget: budgetOf(deps, run), signal: attempt.signal, redact: attempt.redact },
      origin: originOfRun(run, attempt.nodeId),
      onRequest() {
        hasStarted = true;
        writer.start();
      },
      onText: (text) => writer.text(text),
    });
  } finally {
    if (hasStarted) await writer.end();
  }
}

/** A run counts for the identity that it acts as, else for the one that invoked it. */
function originOfRun(run: RunRow, nodeId: string): CallOrigin {
  const { appId, sandboxId, automationId, actsAsUserId, actsAsAgentId, invokedByUserId, invokedByAgentId } = run;
  return {
    ...{ appId, sandboxId, automationId, nodeId, runId: run.id },
    userId: actsAsUserId ?? invokedByUserId,
    agentId: actsAsAgentId ?? invokedByAgentId,
  };
}

/** The budget of a run. A killed process leaves its reservation, because it is unknown how much of it was used. */
function budgetOf({ runTokensMax }: GenerationDeps, run: RunRow): TokenBudget {
  const max = runTokensMax === 0 ? Number.MAX_SAFE_INTEGER : runTokensMax;
  return {
    async reserve(tx, tokens) {
      if (!(await useRunTokens(tx, run, tokens, max)))
        throw new AppError(
          'token_budget_exceeded',
          `A run may use ${max} tokens of the language model, and this request might exceed that.`,
        );
      const ofDay = await holdTokens(tx, run, tokens);
      return {
        async settle(later, used) {
          await settleRunTokens(later, run, used - tokens);
          await ofDay.settle(later, used);
        },
      };
    },
  };
}
