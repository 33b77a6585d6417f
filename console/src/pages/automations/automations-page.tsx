import { lazy, Suspense, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import type { Automation } from '../../api/generated.ts';
import { useSession } from '../../session.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Form } from '../../ui/dialog.tsx';
import { Field, fieldError } from '../../ui/field.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { useAction, useApi } from '../../ui/query.ts';
import { SearchField } from '../../ui/search-field.tsx';
import { Shown, Skeleton } from '../../ui/shown.tsx';
import { State } from '../../ui/state.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { RunList } from '../runs/runs-page.tsx';
import { InvokeForm, suggestPayload } from './invoke-form.tsx';

const DefinitionEditor = lazy(() => import('./editor.tsx'));

/** All automations for developers. End users see those that they may start. */
export function AutomationsPage() {
  const { isDeveloper } = useSession();
  return isDeveloper ? <Managed /> : <ForUsers />;
}

const columns: Column<Automation>[] = [
  {
    id: 'name',
    name: 'Name',
    look: 'main',
    sort: ({ name }) => name,
    cell: ({ id, name }) => <Link href={`/automations/${id}`}>{name}</Link>,
  },
  {
    id: 'starts',
    name: 'Starts',
    cell: ({ type, schedule, timezone, trigger }) => (
      <span className="faint">
        {type === 'scheduled' ? `${schedule} ${timezone}` : type === 'trigger' ? `on ${trigger}` : 'when invoked'}
      </span>
    ),
  },
  {
    id: 'status',
    name: 'Status',
    sort: ({ status }) => status,
    cell: ({ status }) => <State value={status === 'running' ? 'active' : status} />,
  },
  { id: 'changed', name: 'Changed', sort: (one) => one.updated_at, cell: (one) => <Time at={one.updated_at} /> },
];

function Managed() {
  const [{ page, type, status, q }, change] = useFilters({ page: '1', type: '', status: '', q: '' });
  const automations = useApi(
    'GET /api/v1/automations',
    {
      query: {
        page: pageNumber(page),
        ...(type === '' ? {} : { type: type as Automation['type'] }),
        ...(status === '' ? {} : { status: status as Automation['status'] }),
        ...(q === '' ? {} : { search: q }),
      },
    },
    { keep: true },
  );
  const create = (
    <Link className="button primary" href="/automations/new">
      New automation
    </Link>
  );
  return (
    <>
      <PageHead title="Automations" lead="Graphs of steps that run when invoked, on a schedule, or on an event.">
        {create}
      </PageHead>
      <div className="toolbar">
        <SearchField label="Search automations" value={q} onChange={(next) => change({ q: next })} />
        <select aria-label="Filter by type" value={type} onChange={(event) => change({ type: event.target.value })}>
          <option value="">All types</option>
          <option value="invoked">Invoked</option>
          <option value="scheduled">Scheduled</option>
          <option value="trigger">By event</option>
        </select>
        <select
          aria-label="Filter by state"
          value={status}
          onChange={(event) => change({ status: event.target.value })}
        >
          <option value="">All states</option>
          <option value="running">Active</option>
          <option value="paused">Paused</option>
          <option value="draft">Draft</option>
        </select>
      </div>
      <PagedTable
        label="Automations"
        loaded={automations}
        columns={columns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        empty={
          type === '' && status === '' && q === '' ? (
            <Empty title="No automations yet" action={create}>
              An automation defines steps and their order, in YAML or JSON. Begin with one of the templates.
            </Empty>
          ) : (
            <Empty title="No matching automations">No automation has this name, type and state.</Empty>
          )
        }
      />
    </>
  );
}

export function NewAutomationPage() {
  const [, navigate] = useLocation();
  return (
    <>
      <PageHead title="New automation" lead="Begin with a template, and change it. It runs after you activate it." />
      <Suspense fallback={<Skeleton />}>
        <DefinitionEditor onSaved={({ id }) => navigate(`/automations/${id}`)} />
      </Suspense>
    </>
  );
}

/** End users cannot list automations, but can invoke those that allow it and read their own runs. */
function ForUsers() {
  const [chosen, setChosen] = useState('');
  const [run, setRun] = useState('');
  const invocable = useApi('GET /api/v1/invocable_automations', { query: { page_size: 100 } });
  const [, navigate] = useLocation();
  const open = useAction(async () => {
    const found = await call('GET /api/v1/automation_runs/{automation_run}', { path: { automation_run: run.trim() } });
    navigate(`/runs/${found.id}`);
  });
  return (
    <>
      <PageHead title="Automations" lead="Start an automation, and follow its run." />
      <div className="stack">
        <section className="card">
          <h2>Start an automation</h2>
          <Shown loaded={invocable}>
            {({ data }) => {
              const automation = data.find(({ id }) => id === chosen) ?? data[0];
              if (automation === undefined) return <p className="faint">There is none that you may start.</p>;
              return (
                <>
                  <Field label="Automation" hint={automation.description ?? undefined}>
                    {(id, described) => (
                      <select
                        id={id}
                        {...described}
                        value={automation.id}
                        onChange={(event) => setChosen(event.target.value)}
                      >
                        {data.map(({ id: one, name }) => (
                          <option key={one} value={one}>
                            {name}
                          </option>
                        ))}
                      </select>
                    )}
                  </Field>
                  <InvokeForm
                    key={automation.id}
                    automation={automation.id}
                    suggestion={suggestPayload(automation.input_schema ?? null)}
                    onRun={(made) => navigate(`/runs/${made.id}`)}
                  />
                </>
              );
            }}
          </Shown>
        </section>
        <section className="card">
          <h2>View a run</h2>
          <Form submit="Open the run" busy={open.busy} error={open.error} onSubmit={() => open.run()}>
            <Field label="Id of the run" error={fieldError(open.error, 'automation_run')}>
              {(id, described) => (
                <input
                  id={id}
                  {...described}
                  required
                  placeholder="atr_…"
                  spellCheck={false}
                  value={run}
                  onChange={(event) => setRun(event.target.value)}
                />
              )}
            </Field>
          </Form>
        </section>
        <section className="stack">
          <h2>Your runs</h2>
          <RunList empty="Runs that you start appear here." />
        </section>
      </div>
    </>
  );
}
