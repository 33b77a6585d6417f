import { operators } from '../http/route/access.ts';
import { page, pageOf, pageQuery, pageRequest, readPage } from '../http/route/pages.ts';
import { registerResource } from '../http/route/resource.ts';
import { type Api, ref } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import { presentBudget, presentUsage, presentUse, usageCsv } from './budget-present.ts';
import {
  budgetCreateSchema,
  budgetSchema,
  budgetUpdateSchema,
  budgetUseSchema,
  usageQuery,
  usageRowSchema,
} from './budget-schema.ts';
import type { BudgetService } from './budget-service.ts';

const tag = 'Models';
const csvRowsMax = 10_000;

/** Budgets for language models, and what calls used. */
export function registerBudgetRoutes(api: Api, { budgets }: { budgets: BudgetService }): void {
  registerBudgets(api, budgets);
  registerUsage(api, budgets);
}

function registerBudgets(api: Api, budgets: BudgetService): void {
  registerResource(api, {
    path: '/model_budgets',
    param: 'model_budget',
    ids: ['ModelBudget', 'ModelBudgets'],
    words: ['a budget for models', 'budgets for models'],
    tag,
    schema: budgetSchema,
    present: presentBudget,
    about: {
      create:
        'Every call reserves what it may use in all budgets that apply to it, and is 429 `token_budget_exceeded` if one might be exceeded. 422 for more than 200 budgets.',
      list: 'The budgets of production or of the sandbox, newest first.',
      get: 'With its limits. `GET /model_budgets/{model_budget}/uses` says what is used.',
      update: 'Omitted members keep their values; null removes a limit. What is used stays.',
      remove: 'Calls are no longer counted in it.',
    },
    create: { callers: operators, body: budgetCreateSchema, run: budgets.create },
    list: { callers: operators, run: budgets.list },
    get: { callers: operators, run: budgets.get },
    update: { callers: operators, body: budgetUpdateSchema, run: budgets.update },
    remove: { callers: operators, run: budgets.remove },
  });
  api.provisioning(operators, {
    method: 'GET',
    path: '/model_budgets/:model_budget/uses',
    operationId: 'listModelBudgetUses',
    tag,
    summary: 'List what is used of a budget',
    description: 'In the current period, the one who used the most tokens first.',
    params: Type.Object({ model_budget: Type.String() }),
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(ref(budgetUseSchema)) },
    async handler({ caller, params, query }) {
      const request = pageRequest(query);
      const { budget, rows, total, resetsAt } = await budgets.listUses(caller, params.model_budget, request);
      return page(
        request,
        rows.map((row) => presentUse(budget, row, resetsAt)),
        total,
      );
    },
  });
}

function registerUsage(api: Api, budgets: BudgetService): void {
  api.provisioning(operators, {
    method: 'GET',
    path: '/usage/models',
    operationId: 'listModelUsage',
    tag,
    summary: 'List what models were used for',
    description:
      'Tokens and cost of the calls that are still recorded, by day, model, user, agent, automation, run or sandbox.',
    query: Type.Object({ ...pageQuery, ...usageQuery.properties }),
    responses: { 200: pageOf(ref(usageRowSchema)) },
    handler: ({ caller, query }) =>
      readPage(
        query,
        (request) => budgets.listUsage(caller, query, request),
        (row) => presentUsage(query.by ?? 'day', row),
      ),
  });
  api.provisioning(operators, {
    method: 'GET',
    path: '/usage/models/csv',
    operationId: 'exportModelUsage',
    protocol: 'csv',
    tag,
    summary: 'Export what models were used for',
    description: 'The same as a table for spreadsheets, at most 10,000 rows.',
    query: usageQuery,
    responses: { 200: Type.String() },
    async handler({ caller, query, reply }) {
      const [rows] = await budgets.listUsage(caller, query, { page: 1, pageSize: csvRowsMax, offset: 0 });
      return reply.type('text/csv; charset=utf-8').send(usageCsv(query.by ?? 'day', rows));
    },
  });
}
