import type { ModelUsage } from '../../api/generated.ts';
import { PrincipalName } from '../../principals/principal-name.tsx';
import { useFilters } from '../../ui/address.ts';
import { Bars, lastDays } from '../../ui/bars.tsx';
import { compact, count } from '../../ui/format.ts';
import { Empty } from '../../ui/page.tsx';
import { useApi } from '../../ui/query.ts';
import { Shown } from '../../ui/shown.tsx';
import { type Column, DataTable } from '../../ui/table.tsx';
import { money } from './money.ts';

const daysShown = 30;
const groups = { model: 'Model', automation: 'Automation', agent: 'Agent', user: 'User', day: 'Day' } as const;
type Group = keyof typeof groups;

/** What language models used and cost, by day and by what it was for. */
export function ModelUse() {
  const [filters, change] = useFilters({ by: 'model' });
  const by = (filters.by in groups ? filters.by : 'model') as Group;
  const days = useApi('GET /api/v1/usage/models', { query: { by: 'day', page_size: 100 } });
  const usage = useApi('GET /api/v1/usage/models', { query: { by, page_size: 100 } }, { keep: true });
  const tokens = new Map(
    days.data?.data.map((one) => [one.group ?? '', one.prompt_tokens + one.completion_tokens] as const),
  );
  return (
    <>
      <Bars label="Tokens by day" height={96} bars={lastDays(daysShown, tokens, (value) => count(value, 'token'))} />
      <div className="toolbar">
        <select aria-label="Group by" value={by} onChange={(event) => change({ by: event.target.value })}>
          {Object.entries(groups).map(([value, name]) => (
            <option key={value} value={value}>
              By {name.toLowerCase()}
            </option>
          ))}
        </select>
      </div>
      <Shown loaded={usage}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="Nothing was used yet">
              Tokens and costs are added up here, a few seconds after each call.
            </Empty>
          ) : (
            <DataTable
              label="Usage of language models"
              columns={columnsOf(by)}
              rows={data}
              rowId={({ group }) => group ?? ''}
            />
          )
        }
      </Shown>
    </>
  );
}

function columnsOf(by: Group): Column<ModelUsage>[] {
  const isPrincipal = by === 'agent' || by === 'user';
  return [
    {
      ...{ id: 'group', name: groups[by], look: 'main' },
      cell: ({ group }) =>
        group === null ? (
          <span className="faint">none</span>
        ) : isPrincipal ? (
          <PrincipalName id={group} />
        ) : by === 'automation' ? (
          <a href={`../automations/${group}`}>{group}</a>
        ) : (
          group
        ),
    },
    { id: 'calls', name: 'Calls', look: 'number', sort: (one) => one.calls, cell: (one) => compact(one.calls) },
    {
      ...{ id: 'prompt', name: 'Prompt tokens', look: 'number' },
      ...{ sort: (one: ModelUsage) => one.prompt_tokens, cell: (one: ModelUsage) => compact(one.prompt_tokens) },
    },
    {
      ...{ id: 'completion', name: 'Output tokens', look: 'number' },
      ...{
        sort: (one: ModelUsage) => one.completion_tokens,
        cell: (one: ModelUsage) => compact(one.completion_tokens),
      },
    },
    { id: 'cost', name: 'Cost', look: 'number', sort: (one) => one.cost, cell: (one) => money(one.cost) },
  ];
}
