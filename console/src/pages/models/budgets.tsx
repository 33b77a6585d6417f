import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { CreateModelBudgetRequest, ModelBudget } from '../../api/generated.ts';
import { PrincipalName } from '../../principals/principal-name.tsx';
import { useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/form-dialog.tsx';
import { compact } from '../../ui/format.ts';
import { Empty } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import type { Column } from '../../ui/table.tsx';
import '../app/usage.css';
import './models.css';
import { money } from './money.ts';

const subjects: Record<ModelBudget['subject'], string> = {
  ...{ app: 'The whole app', sandbox: 'A sandbox', user: 'Each user', agent: 'Each agent' },
  ...{ automation: 'Each automation', run: 'Each run' },
};
const periods: Record<ModelBudget['period'], string> = { day: 'a day', month: 'a month', total: 'in total' };

const columns: Column<ModelBudget>[] = [
  {
    ...{ id: 'subject', name: 'Limits', look: 'main' },
    cell: ({ subject, subject_id }) =>
      subject_id === undefined ? subjects[subject] : <PrincipalName id={subject_id} />,
  },
  { id: 'period', name: 'Period', cell: ({ period }) => periods[period] },
  { id: 'used', name: 'Used', cell: (budget) => <Used budget={budget} /> },
  {
    id: 'tokens',
    name: 'Tokens',
    look: 'number',
    cell: ({ tokens }) => (tokens === undefined ? '–' : compact(tokens)),
  },
  { id: 'cost', name: 'Cost', look: 'number', cell: ({ cost }) => (cost === undefined ? '–' : money(cost)) },
  {
    ...{ id: 'soft', name: 'Warns at', look: 'number' },
    cell: ({ soft_tokens, soft_cost }) =>
      [soft_tokens && compact(soft_tokens), soft_cost && money(soft_cost)].filter(Boolean).join(' · ') || '–',
  },
  {
    ...{ id: 'actions', name: 'Actions', look: 'actions' },
    cell: (budget) => (
      <DeleteButton
        title="Delete this budget?"
        action="Delete the budget"
        quiet={`the budget of ${subjects[budget.subject].toLowerCase()}`}
        perform={async () => {
          await call('DELETE /api/v1/model_budgets/{model_budget}', { path: { model_budget: budget.id } });
          refresh('GET /api/v1/model_budgets');
        }}
      >
        What was used is forgotten. Calls are no longer limited by it.
      </DeleteButton>
    ),
  },
];

/** How much of the budget is used, of the subject that used most. */
function Used({ budget }: { budget: ModelBudget }) {
  const path = { model_budget: budget.id };
  const uses = useApi('GET /api/v1/model_budgets/{model_budget}/uses', { path, query: { page_size: 20 } });
  const parts = (uses.data?.data ?? []).map(({ tokens, cost }) =>
    Math.max(budget.tokens ? tokens / budget.tokens : 0, budget.cost ? cost / budget.cost : 0),
  );
  const part = Math.max(0, ...parts);
  return (
    <span className="meter-cell">
      <meter aria-label="Used" value={part} min={0} max={1} high={0.8} optimum={0} />
      <span className="number faint">{uses.data === undefined ? '…' : `${Math.round(part * 100)} %`}</span>
    </span>
  );
}

/** What limits the tokens and the cost of language models. */
export function Budgets() {
  const [{ page }, change] = useFilters({ page: '1' });
  const [adding, setAdding] = useState(false);
  const budgets = useApi('GET /api/v1/model_budgets', { query: { page: Number(page) || 1 } }, { keep: true });
  const button = <Button onClick={() => setAdding(true)}>New budget</Button>;
  return (
    <>
      <div className="toolbar">
        <p className="faint grow">A call that would exceed a budget is refused before it is sent.</p>
        {budgets.data?.data.length ? button : null}
      </div>
      <PagedTable
        label="Budgets"
        loaded={budgets}
        columns={columns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        empty={
          <Empty title="No budgets yet" action={button}>
            Limit what the app, a user, an agent or an automation may spend in a day or a month.
          </Empty>
        }
      />
      {adding ? <NewBudget onClose={() => setAdding(false)} /> : null}
    </>
  );
}

const millionths = 1_000_000;

function NewBudget({ onClose }: { onClose: () => void }) {
  return (
    <FormDialog
      title="New budget"
      submit="Create the budget"
      fields={[
        {
          ...{ name: 'subject', label: 'Limits', kind: 'select' },
          options: Object.entries(subjects),
        },
        { name: 'period', label: 'Period', kind: 'select', options: Object.entries(periods) },
        { name: 'tokens', label: 'Tokens (optional)', kind: 'number', min: 0 },
        {
          ...{ name: 'cost', label: 'Cost (optional)', kind: 'number', min: 0, isDecimal: true },
          hint: 'In the currency of your prices.',
        },
      ]}
      initial={{ subject: 'app', period: 'month' }}
      onSubmit={async (body) => {
        const cost = typeof body.cost === 'number' ? { cost: Math.round(body.cost * millionths) } : {};
        await call('POST /api/v1/model_budgets', { body: { ...body, ...cost } as CreateModelBudgetRequest });
        refresh('GET /api/v1/model_budgets');
      }}
      onClose={onClose}
    />
  );
}
