import type { Static } from 'typebox';
import { strict } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import { budgetPeriods, budgetSubjects } from '../llm/budget-store.ts';
import { optional, removable } from './schema.ts';

const amount = (description: string) => Type.Integer({ minimum: 0, maximum: 1_000_000_000_000_000, description });

const subject = Type.Enum([...budgetSubjects], {
  description:
    'Whose calls count together. `app` counts those of sandboxes too; it and `sandbox` are set with a key of production.',
});
const subjectId = Type.String({
  maxLength: 64,
  description: 'The one that the budget is for. Absent: each user, agent, run … has the budget for itself.',
});
const period = Type.Enum([...budgetPeriods], {
  description: 'When the count starts at 0 again: each day or month (UTC), or never.',
});
const amounts = {
  tokens: amount('Tokens beyond which calls are refused.'),
  cost: amount('Money beyond which calls are refused, in millionths of a currency unit.'),
  soft_tokens: amount('Tokens beyond which the event `model_budget.reached` is emitted.'),
  soft_cost: amount('Money beyond which the event is emitted, in millionths of a currency unit.'),
};

export const budgetSchema = Type.Object(
  {
    id: Type.String({ description: 'mbg_…' }),
    app: Type.String(),
    sandbox: Type.Union([Type.String(), Type.Null()]),
    subject,
    subject_id: Type.Optional(subjectId),
    period,
    ...optional(amounts),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'ModelBudget', description: 'A limit for the tokens or the cost of language models.' },
);

export const budgetCreateSchema = strict({
  subject,
  subject_id: Type.Optional(subjectId),
  period,
  ...optional(amounts),
});
export const budgetUpdateSchema = strict(removable(amounts, ' Null removes the limit.'));
export type BudgetCreate = Static<typeof budgetCreateSchema>;
export type BudgetUpdate = Static<typeof budgetUpdateSchema>;

export const budgetUseSchema = Type.Object(
  {
    subject_id: Type.Union([Type.String(), Type.Null()], { description: 'Who used it; null for the app.' }),
    tokens: Type.Integer({ description: 'Tokens used, with those reserved by calls in progress.' }),
    cost: Type.Integer({ description: 'Money used, in millionths of a currency unit.' }),
    resets_at: Type.Union([Type.String(), Type.Null()], { description: 'When the count starts at 0 again.' }),
  },
  { $id: 'ModelBudgetUse', description: 'How much of a budget one of its subjects has used in this period.' },
);

const usageDimensions = ['sandbox', 'user', 'agent', 'automation', 'run', 'model', 'day'] as const;
export type UsageDimension = (typeof usageDimensions)[number];

export const usageRowSchema = Type.Object(
  {
    group: Type.Union([Type.String(), Type.Null()], {
      description: 'The id, the name of the model, or the day (UTC); null for calls of none.',
    }),
    calls: Type.Integer({ description: 'The number of calls.' }),
    prompt_tokens: Type.Integer({ description: 'Tokens of messages.' }),
    completion_tokens: Type.Integer({ description: 'Tokens that models wrote.' }),
    cost: Type.Integer({ description: 'What they cost, in millionths of a currency unit.' }),
  },
  { $id: 'ModelUsage', description: 'What the calls of one group used.' },
);

export const usageQuery = Type.Object({
  by: Type.Optional(
    Type.Enum([...usageDimensions], {
      description:
        'What calls are grouped by. Default `day`. With a key of production, `sandbox` counts all sandboxes.',
    }),
  ),
  since: Type.Optional(Type.String({ maxLength: 40, description: 'Calls at or after this time (ISO 8601).' })),
  until: Type.Optional(Type.String({ maxLength: 40, description: 'Calls before this time (ISO 8601).' })),
});
export type UsageQuery = Static<typeof usageQuery>;
