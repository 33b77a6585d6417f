import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import type { Automation, AutomationRun } from '../../api/generated.ts';
import { Button, CodeField, Empty, ErrorNotice, PageHead, Pager, Shown, State, Table, Time } from '../../ui/basics.tsx';
import { Confirm, Dialog, Form } from '../../ui/dialog.tsx';
import { parseJson } from '../../ui/json.ts';
import { useAction, useLoad } from '../../ui/use-load.ts';
import { Graph } from './graph.tsx';
import { InvokeForm, suggestPayload } from './invoke-form.tsx';

const livePollMs = 1_000;

/** One automation: its graph, its runs, and the actions to start and change it. */
export function AutomationPage({ id }: { id: string }) {
  const path = { automation: id };
  const automation = useLoad(id, () => call('GET /api/v1/automations/{automation}', { path }));
  const [asking, setAsking] = useState<'invoke' | 'edit' | 'delete'>();
  const [, navigate] = useLocation();
  const toggle = useAction(async (running: boolean) => {
    const changed = running
      ? await call('POST /api/v1/automations/{automation}/pause', { path })
      : await call('POST /api/v1/automations/{automation}/activate', { path });
    automation.replace(changed);
  });
  const remove = useAction(() => call('DELETE /api/v1/automations/{automation}', { path }));
  return (
    <>
      <p className="back">
        <Link href="/runs">← Automations</Link>
      </p>
      <Shown loaded={automation}>
        {(found) => {
          const running = found.status === 'running';
          return (
            <>
              <PageHead
                title={found.name}
                lead={
                  <>
                    <State value={running ? 'active' : found.status} /> {found.description ?? startsWhen(found)}
                    {found.next_run_at === undefined ? null : (
                      <>
                        {' '}
                        · next <Time at={found.next_run_at} />
                      </>
                    )}
                  </>
                }
              >
                {found.type === 'invoked' ? (
                  <Button kind="primary" onClick={() => setAsking('invoke')} disabled={!running}>
                    Run…
                  </Button>
                ) : null}
                <Button busy={toggle.busy} onClick={() => toggle.run(running)}>
                  {running ? 'Pause' : 'Activate'}
                </Button>
                <Button onClick={() => setAsking('edit')}>Edit</Button>
                <Button kind="danger" onClick={() => setAsking('delete')}>
                  Delete
                </Button>
              </PageHead>
              <ErrorNotice error={toggle.error} />
              <section className="card" aria-label="Graph">
                <Graph workflow={found.workflow} />
              </section>
              <h2>Runs</h2>
              <Runs automation={found} />
              {asking === 'invoke' ? (
                <Dialog title={`Run ${found.name}`} onClose={() => setAsking(undefined)}>
                  <InvokeForm
                    automation={id}
                    suggestion={suggestPayload(found.input_schema)}
                    onRun={(run) => navigate(`/runs/${run.id}`)}
                  />
                </Dialog>
              ) : null}
              {asking === 'edit' ? (
                <Edit automation={found} onChange={automation.replace} onClose={() => setAsking(undefined)} />
              ) : null}
              {asking === 'delete' ? (
                <Confirm
                  title={`Delete ${found.name}?`}
                  action="Delete the automation"
                  busy={remove.busy}
                  error={remove.error}
                  onClose={() => setAsking(undefined)}
                  onConfirm={async () => {
                    if (await remove.run()) navigate('/runs');
                  }}
                >
                  This also deletes its runs and their journals. It cannot be undone.
                </Confirm>
              ) : null}
            </>
          );
        }}
      </Shown>
    </>
  );
}

function startsWhen({ type, schedule, timezone, trigger }: Automation): string {
  if (type === 'scheduled') return `Runs on the schedule ${schedule} (${timezone})`;
  if (type === 'trigger') return `Runs on every ${trigger}`;
  return 'Runs when invoked';
}

function Runs({ automation }: { automation: Automation }) {
  const [page, setPage] = useState(1);
  const [status, setStatus] = useState('');
  const runs = useLoad(
    `${page}/${status}`,
    () =>
      call('GET /api/v1/automations/{automation}/runs', {
        path: { automation: automation.id },
        query: { page, ...(status === '' ? {} : { status: status as AutomationRun['status'] }) },
      }),
    () => livePollMs,
  );
  return (
    <>
      <div className="toolbar">
        <select
          aria-label="Which runs"
          value={status}
          onChange={(event) => {
            setPage(1);
            setStatus(event.target.value);
          }}
        >
          <option value="">All</option>
          {['pending', 'running', 'completed', 'failed', 'cancelled'].map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <span className="live">Live</span>
      </div>
      <Shown loaded={runs}>
        {(list) =>
          list.data.length === 0 ? (
            <Empty title="No runs here">
              {automation.status !== 'running'
                ? 'Activate the automation first. A paused automation does not run.'
                : automation.type === 'invoked'
                  ? 'Press “Run…” to start the first one.'
                  : 'The next one appears here automatically.'}
            </Empty>
          ) : (
            <>
              <Table columns={['Run', 'Status', 'Started', 'Took']}>
                {list.data.map((run) => (
                  <tr key={run.id}>
                    <td className="main">
                      <Link href={`/runs/${run.id}`}>
                        <code className="cut">{run.id}</code>
                      </Link>
                    </td>
                    <td>
                      <State value={run.status} />
                    </td>
                    <td>
                      <Time at={run.created_at} />
                    </td>
                    <td className="faint">{took(run)}</td>
                  </tr>
                ))}
              </Table>
              <Pager page={list} onPage={setPage} />
            </>
          )
        }
      </Shown>
    </>
  );
}

/** The duration of a run so far. */
export function took({ started_at, completed_at }: AutomationRun): string {
  if (started_at === undefined) return '–';
  const ms = (completed_at === undefined ? Date.now() : Date.parse(completed_at)) - Date.parse(started_at);
  if (ms < 1_000) return `${Math.max(0, ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`;
}

const editable = [
  ...['name', 'lookup_key', 'description', 'trigger', 'filter', 'schedule', 'timezone', 'workflow', 'input_schema'],
  ...['invoke_auth', 'run_as_user', 'run_as_agent', 'max_concurrent_runs', 'timeout_seconds', 'metadata'],
] as (keyof Automation)[];

function Edit({
  automation,
  onChange,
  onClose,
}: {
  automation: Automation;
  onChange: (automation: Automation) => void;
  onClose: () => void;
}) {
  const known = Object.fromEntries(
    editable.filter((name) => automation[name] !== undefined).map((name) => [name, automation[name]]),
  );
  const [text, setText] = useState(JSON.stringify(known, null, 2));
  const save = useAction(async () => {
    const body = parseJson(text) as { name: string };
    onChange(await call('PATCH /api/v1/automations/{automation}', { path: { automation: automation.id }, body }));
    onClose();
  });
  return (
    <Dialog title={`Edit ${automation.name}`} onClose={onClose} wide>
      <Form submit="Save" busy={save.busy} error={save.error} onSubmit={() => save.run()} onCancel={onClose}>
        <CodeField
          label="Definition"
          hint="Active runs continue with the graph that they started with."
          rows={20}
          value={text}
          onChange={setText}
        />
      </Form>
    </Dialog>
  );
}
