import { Link } from 'wouter';
import type { ModelCall } from '../../api/generated.ts';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { compact, duration } from '../../ui/format.ts';
import { Empty } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { useApi } from '../../ui/query.ts';
import { SearchField } from '../../ui/search-field.tsx';
import { State } from '../../ui/state.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { money } from './money.ts';

const statuses = ['running', 'succeeded', 'failed', 'abandoned'] as const;

const columns: Column<ModelCall>[] = [
  {
    ...{ id: 'model', name: 'Model', look: 'main' },
    cell: ({ model, alias }) => (
      <>
        {model} {alias === undefined ? null : <span className="faint">as {alias}</span>}
      </>
    ),
  },
  {
    ...{ id: 'status', name: 'Status' },
    cell: ({ status, error_code }) => (
      <span title={error_code}>
        <State value={status} />
      </span>
    ),
  },
  {
    ...{ id: 'for', name: 'For' },
    cell: ({ run, extraction, node }) =>
      run !== undefined ? (
        <Link href={`/runs/${run}`}>{node ?? 'A run'}</Link>
      ) : extraction !== undefined ? (
        <Link href={`/extractions/${extraction}`}>An extraction</Link>
      ) : (
        <span className="faint">{node ?? '–'}</span>
      ),
  },
  {
    ...{ id: 'prompt', name: 'Prompt', look: 'number' },
    cell: ({ prompt_tokens }) => (prompt_tokens === undefined ? '–' : compact(prompt_tokens)),
  },
  {
    ...{ id: 'completion', name: 'Output', look: 'number' },
    cell: ({ completion_tokens }) => (completion_tokens === undefined ? '–' : compact(completion_tokens)),
  },
  { id: 'cost', name: 'Cost', look: 'number', cell: ({ cost }) => (cost === undefined ? '–' : money(cost)) },
  {
    ...{ id: 'latency', name: 'Took', look: 'number' },
    cell: ({ latency_ms }) => (latency_ms === undefined ? '–' : duration(latency_ms)),
  },
  { id: 'at', name: 'When', cell: ({ created_at }) => <Time at={created_at} /> },
];

/** Every request to a language model. */
export function Calls() {
  const [{ page, status, model }, change] = useFilters({ page: '1', status: '', model: '' });
  const query = {
    page: pageNumber(page),
    ...(status === '' ? {} : { status: status as (typeof statuses)[number] }),
    ...(model === '' ? {} : { model }),
  };
  const calls = useApi('GET /api/v1/model_calls', { query }, { keep: true });
  return (
    <>
      <div className="toolbar">
        <SearchField
          label="Model"
          placeholder="Name of a model"
          value={model}
          onChange={(next) => change({ model: next })}
        />
        <select
          aria-label="Filter by state"
          value={status}
          onChange={(event) => change({ status: event.target.value })}
        >
          <option value="">All states</option>
          {statuses.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </div>
      <PagedTable
        label="Calls"
        loaded={calls}
        columns={columns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        empty={
          <Empty title={status + model === '' ? 'No calls yet' : 'Nothing matches'}>
            Each request of an automation or extraction to a language model is listed here, with its tokens and cost.
          </Empty>
        }
      />
    </>
  );
}
