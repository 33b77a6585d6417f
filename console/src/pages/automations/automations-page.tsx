import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import { useSession } from '../../session.tsx';
import {
  Button,
  CodeField,
  Empty,
  Field,
  fieldError,
  PageHead,
  Pager,
  Shown,
  State,
  Table,
  Time,
} from '../../ui/basics.tsx';
import { Dialog, Form } from '../../ui/dialog.tsx';
import { parseJson } from '../../ui/json.ts';
import { useAction, useLoad } from '../../ui/use-load.ts';
import { InvokeForm } from './invoke-form.tsx';

const example = {
  name: 'Hello',
  type: 'invoked',
  workflow: {
    kind: 'WorkflowGraph',
    version: 1,
    start_node: 'start',
    nodes: [
      { id: 'start', kind: 'trigger', on_success: 'greet' },
      { id: 'greet', kind: 'transform', value: 'Hello {{$.name}}', on_success: 'done' },
      { id: 'done', kind: 'complete', result: { greeting: '{{$nodes.greet}}' } },
    ],
  },
};

/** All automations for developers; for end users, those whose name they know. */
export function AutomationsPage() {
  const { isDeveloper } = useSession();
  return isDeveloper ? <Managed /> : <ForUsers />;
}

function Managed() {
  const [page, setPage] = useState(1);
  const [type, setType] = useState('');
  const [creating, setCreating] = useState(false);
  const automations = useLoad(`${page}/${type}`, () =>
    call('GET /api/v1/automations', {
      query: { page, ...(type === '' ? {} : { type: type as 'invoked' }) },
    }),
  );
  return (
    <>
      <PageHead title="Automations" lead="Graphs of steps that run when invoked, on a schedule, or on an event.">
        <Button kind="primary" onClick={() => setCreating(true)}>
          New automation
        </Button>
      </PageHead>
      <div className="toolbar">
        <select
          aria-label="Which automations"
          value={type}
          onChange={(event) => {
            setPage(1);
            setType(event.target.value);
          }}
        >
          <option value="">All types</option>
          <option value="invoked">Invoked</option>
          <option value="scheduled">Scheduled</option>
          <option value="trigger">By event</option>
        </select>
      </div>
      <Shown loaded={automations}>
        {(list) =>
          list.data.length === 0 ? (
            <Empty
              title="No automations yet"
              action={
                <Button kind="primary" onClick={() => setCreating(true)}>
                  Start from an example
                </Button>
              }
            >
              An automation is a JSON file that defines steps and their order. The example returns a greeting.
            </Empty>
          ) : (
            <>
              <Table columns={['Name', 'Starts', 'Status', 'Changed']}>
                {list.data.map((one) => (
                  <tr key={one.id}>
                    <td className="main">
                      <Link href={`/runs/automations/${one.id}`}>{one.name}</Link>
                    </td>
                    <td className="faint">
                      {one.type === 'scheduled'
                        ? `${one.schedule} ${one.timezone}`
                        : one.type === 'trigger'
                          ? `on ${one.trigger}`
                          : 'when invoked'}
                    </td>
                    <td>
                      <State value={one.status === 'running' ? 'active' : one.status} />
                    </td>
                    <td>
                      <Time at={one.updated_at} />
                    </td>
                  </tr>
                ))}
              </Table>
              <Pager page={list} onPage={setPage} />
            </>
          )
        }
      </Shown>
      {creating ? <NewAutomation onClose={() => setCreating(false)} /> : null}
    </>
  );
}

function NewAutomation({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState(JSON.stringify(example, null, 2));
  const [activate, setActivate] = useState(true);
  const [, navigate] = useLocation();
  const create = useAction(async () => {
    const body = parseJson(text) as { name: string; type: 'invoked' };
    const made = await call('POST /api/v1/automations', { body });
    if (activate) await call('POST /api/v1/automations/{automation}/activate', { path: { automation: made.id } });
    navigate(`/runs/automations/${made.id}`);
  });
  return (
    <Dialog title="New automation" onClose={onClose} wide>
      <Form submit="Create" busy={create.busy} error={create.error} onSubmit={() => create.run()} onCancel={onClose}>
        <CodeField
          label="Definition"
          hint="The body of POST /api/v1/automations, as JSON."
          rows={18}
          value={text}
          onChange={setText}
        />
        <label className="check">
          <input type="checkbox" checked={activate} onChange={(event) => setActivate(event.target.checked)} />
          Activate it
        </label>
      </Form>
    </Dialog>
  );
}

/** End users cannot list automations, but can invoke those that allow it and read their own runs. */
function ForUsers() {
  const [automation, setAutomation] = useState('');
  const [run, setRun] = useState('');
  const [, navigate] = useLocation();
  const open = useAction(async () => {
    const found = await call('GET /api/v1/automation_runs/{automation_run}', { path: { automation_run: run.trim() } });
    navigate(`/runs/${found.id}`);
  });
  return (
    <>
      <PageHead title="Automations" lead="Start an automation by its name, and follow its run." />
      <div className="stack">
        <section className="card">
          <h2>Start an automation</h2>
          <Field label="Name or id" hint="Its lookup key or id (aut_…). The developer of the app can give it to you.">
            {(id, described) => (
              <input
                id={id}
                {...described}
                spellCheck={false}
                value={automation}
                onChange={(event) => setAutomation(event.target.value)}
              />
            )}
          </Field>
          <InvokeForm automation={automation.trim()} onRun={(made) => navigate(`/runs/${made.id}`)} />
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
      </div>
    </>
  );
}
