import type { Domain } from '../domain.ts';
import { type BudgetService, createBudgetService } from './budget-service.ts';
import { createModelService, type ModelDeps, type ModelService } from './service.ts';
import { modelSweepJob, type SweepDeps, sweepModels } from './sweep.ts';

/*
 * Which language models an app may use, what their calls were, and what they may cost. The calls themselves are made
 * by llm/, which reads these tables.
 * - `service.ts` and `store.ts`: models and aliases; `available.ts`: with those of the operator.
 * - `call-store.ts` lists the records of calls.
 * - `budget-service.ts` and the files beside it: budgets, and usage by user, agent, run and so on.
 * - `sweep.ts` marks calls of killed processes and deletes old records.
 */

export function createModels(deps: ModelDeps & SweepDeps): Domain<{ models: ModelService; budgets: BudgetService }> {
  return {
    service: { models: createModelService(deps), budgets: createBudgetService(deps) },
    tasks: { [modelSweepJob.task]: () => sweepModels(deps) },
    recurring: [modelSweepJob],
  };
}
