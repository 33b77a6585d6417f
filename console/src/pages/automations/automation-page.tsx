import { lazy, Suspense, useState } from 'react';
import { useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import type { Automation } from '../../api/generated.ts';
import { useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Id } from '../../ui/copy.tsx';
import { Confirm, Dialog } from '../../ui/dialog.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { PageHead } from '../../ui/page.tsx';
import { optimistically, useAction, useApi } from '../../ui/query.ts';
import { Shown, Skeleton } from '../../ui/shown.tsx';
import { State } from '../../ui/state.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Time } from '../../ui/time.tsx';
import { RunList } from '../runs/runs-page.tsx';
import { Graph } from './graph.tsx';
import { InvokeForm, suggestPayload } from './invoke-form.tsx';
import { Limits } from './limits.tsx';

const DefinitionEditor = lazy(() => import('./editor.tsx'));
const Versions = lazy(() => import('./versions.tsx'));

type Tab = 'runs' | 'definition' | 'versions';

/** One automation: its graph, its runs, its definition, and the actions to start and change it. */
export function AutomationPage({ id }: { id: string }) {
  const path = { automation: id };
  const automation = useApi('GET /api/v1/automations/{automation}', { path });
  const [{ tab }, change] = useFilters({ tab: 'runs' });
  const [asking, setAsking] = useState<'invoke' | 'delete'>();
  const [, navigate] = useLocation();
  const refresh = ['GET /api/v1/automations'] as const;
  const toggle = useAction(
    (found: Automation) => {
      const isRunning = found.status === 'running';
      const guess: Automation = { ...found, status: isRunning ? 'paused' : 'running' };
      return optimistically(found, guess, automation.replace, () =>
        isRunning
          ? call('POST /api/v1/automations/{automation}/pause', { path })
          : call('POST /api/v1/automations/{automation}/activate', { path }),
      );
    },
    { refresh: [...refresh] },
  );
  const remove = useAction(() => call('DELETE /api/v1/automations/{automation}', { path }), {
    say: 'The automation was deleted.',
    refresh: [...refresh],
  });
  return (
    <Shown loaded={automation}>
      {(found) => {
        const running = found.status === 'running';
        return (
          <>
            <PageHead title={found.name} lead={<Lead automation={found} />}>
              {found.type === 'scheduled' ? null : (
                <Button kind="primary" onClick={() => setAsking('invoke')} disabled={!running}>
                  {found.type === 'invoked' ? 'Run…' : 'Emit its event…'}
                </Button>
              )}
              <Button busy={toggle.busy} onClick={() => toggle.run(found)}>
                {running ? 'Pause' : 'Activate'}
              </Button>
              <Button onClick={() => change({ tab: 'definition' })}>Edit</Button>
              <Button kind="danger" onClick={() => setAsking('delete')}>
                Delete
              </Button>
            </PageHead>
            <ErrorNotice error={toggle.error} />
            {found.paused_reason === undefined ? null : <p className="notice warning">{found.paused_reason}</p>}
            <Tabs<Tab>
              label="Parts of the automation"
              asks
              value={tab as Tab}
              onChange={(next) => change({ tab: next })}
              tabs={[
                { id: 'runs', name: 'Graph and runs', panel: <Overview automation={found} /> },
                {
                  id: 'definition',
                  name: 'Definition',
                  panel: (
                    <Suspense fallback={<Skeleton />}>
                      <DefinitionEditor automation={found} onSaved={automation.replace} />
                    </Suspense>
                  ),
                },
                {
                  id: 'versions',
                  name: 'Versions',
                  panel: (
                    <Suspense fallback={<Skeleton />}>
                      <Versions automation={found} onRestored={automation.replace} />
                    </Suspense>
                  ),
                },
              ]}
            />
            {asking === 'invoke' ? (
              <Dialog title={`Run ${found.name}`} onClose={() => setAsking(undefined)}>
                <InvokeForm
                  automation={id}
                  {...(found.type === 'trigger' ? { event: found.trigger ?? '' } : {})}
                  suggestion={suggestPayload(found.input_schema)}
                  onRun={(run) => (found.type === 'trigger' ? setAsking(undefined) : navigate(`/runs/${run.id}`))}
                />
              </Dialog>
            ) : null}
            {asking === 'delete' ? (
              <Confirm
                title={`Delete ${found.name}?`}
                action="Delete the automation"
                busy={remove.busy}
                error={remove.error}
                onClose={() => setAsking(undefined)}
                onConfirm={async () => {
                  if (await remove.run()) navigate('/automations');
                }}
              >
                This also deletes its runs and their journals. This cannot be undone.
              </Confirm>
            ) : null}
          </>
        );
      }}
    </Shown>
  );
}

function Lead({ automation }: { automation: Automation }) {
  const { id, status, description, next_run_at } = automation;
  return (
    <>
      <State value={status === 'running' ? 'active' : status} /> · {description ?? startsWhen(automation)} ·{' '}
      <Id id={id} />
      {next_run_at === undefined ? null : (
        <>
          {' '}
          · next <Time at={next_run_at} />
        </>
      )}
    </>
  );
}

function Overview({ automation }: { automation: Automation }) {
  const empty =
    automation.status !== 'running'
      ? 'Activate the automation first. A paused automation does not run.'
      : automation.type === 'invoked'
        ? 'Press “Run…” to start the first one.'
        : 'The next one appears here automatically.';
  return (
    <>
      <section className="card" aria-label="Graph">
        <Graph workflow={automation.workflow} />
      </section>
      <Limits automation={automation} />
      <h2>Runs</h2>
      <RunList automation={automation.id} empty={empty} />
    </>
  );
}

export function startsWhen({ type, schedule, timezone, trigger }: Automation): string {
  if (type === 'scheduled') return `Runs on the schedule ${schedule} (${timezone})`;
  if (type === 'trigger') return `Runs on every ${trigger}`;
  return 'Runs when invoked';
}
