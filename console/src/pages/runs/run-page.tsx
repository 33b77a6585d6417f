import { useEffect, useMemo, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { type ApiError, call, urlOf } from '../../api/client.ts';
import type { AutomationRun } from '../../api/generated.ts';
import { readEvents } from '../../api/stream.ts';
import { LedgerLine } from '../../ledger/ledger-line.tsx';
import { PrincipalName } from '../../principals/principal-name.tsx';
import { useSession } from '../../session.tsx';
import { Button } from '../../ui/button.tsx';
import { Json } from '../../ui/code.tsx';
import { Id } from '../../ui/copy.tsx';
import { Confirm, Dialog, Form } from '../../ui/dialog.tsx';
import { CodeField, Field, fieldError } from '../../ui/field.tsx';
import { duration } from '../../ui/format.ts';
import { parseJson } from '../../ui/json.ts';
import { Live } from '../../ui/live.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Details, PageHead } from '../../ui/page.tsx';
import { useAction, useApi } from '../../ui/query.ts';
import { Shown } from '../../ui/shown.tsx';
import { State } from '../../ui/state.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { Time } from '../../ui/time.tsx';
import { Graph } from '../automations/graph.tsx';
import { Timeline } from './journal.tsx';
import { MadeFiles } from './made-files.tsx';
import { NodePanel, Waits } from './node-panel.tsx';
import { PendingFor } from './pending-for.tsx';
import { RunAgain } from './run-again.tsx';
import { type Execution, foldRun, isOver } from './run-state.ts';
import { type Journal, useJournal } from './use-journal.ts';
import { Waterfall } from './waterfall.tsx';
import { Writing } from './writing.tsx';

const pollMs = 700;

/** One run, live: what it waits for, its graph, its waterfall, and its journal. */
export function RunPage({ id }: { id: string }) {
  const path = { automation_run: id };
  // Only invoked runs have a stream, and it does not say why a run is pending. Others are polled.
  const poll = (found: AutomationRun) =>
    (found.type !== 'invoked' || found.status === 'pending') && !isOver(found) ? pollMs : undefined;
  const run = useApi('GET /api/v1/automation_runs/{automation_run}', { path }, { poll });
  const { data, replace } = run;
  const latest = useRef(data);
  latest.current = data;
  const streamed = data?.type === 'invoked' && !isOver(data);
  useEffect(() => {
    if (!streamed) return;
    const ended = new AbortController();
    const url = urlOf('/api/v1/automation_runs/{automation_run}/stream', { automation_run: id });
    const onData = (now: AutomationRun) => {
      const { pending_for } = latest.current ?? {};
      replace(now.status === 'pending' && pending_for !== undefined ? { ...now, pending_for } : now);
      return isOver(now);
    };
    void readEvents<AutomationRun>(url, onData, ended.signal);
    return () => ended.abort();
  }, [id, streamed, replace]);
  const journal = useJournal(id, data === undefined ? undefined : `${data.status}/${data.updated_at}`);

  return (
    <Shown loaded={run}>
      {(found) => <RunBody run={found} journal={journal} failure={run.error} onChange={run.replace} />}
    </Shown>
  );
}

function RunBody({
  run,
  journal,
  failure,
  onChange,
}: {
  run: AutomationRun;
  journal: Journal;
  /** Why the run could not be loaded again. */
  failure: ApiError | undefined;
  onChange: (run: AutomationRun) => void;
}) {
  const { isDeveloper } = useSession();
  const [, navigate] = useLocation();
  const [again, setAgain] = useState<Execution | 'failure'>();
  const [asking, setAsking] = useState<'cancel' | 'signal'>();
  const path = { automation_run: run.id };
  const automation = useApi(
    'GET /api/v1/automations/{automation}',
    { path: { automation: run.automation } },
    { enabled: isDeveloper },
  );
  const state = useMemo(() => foldRun(journal.entries, run), [journal.entries, run]);
  const waits = state.executions.flatMap((one) => (one.waits && one.waits.kind !== 'child' ? [one] : []));
  const signals = waits.flatMap(({ waits: one }) => (one?.kind === 'signal' ? [one.name] : []));
  const cancel = useAction(
    async () => onChange(await call('POST /api/v1/automation_runs/{automation_run}/cancel', { path })),
    { say: 'The run is cancelled.' },
  );
  const retry = useAction(async () => {
    const again = await call('POST /api/v1/automation_runs/{automation_run}/retry', { path });
    navigate(`/runs/${again.id}`);
  });
  const over = isOver(run);
  const shown = journal.about?.status === 'waiting' && !over ? 'waiting' : run.status;
  return (
    <>
      <PageHead
        crumb={automation.data ? `${automation.data.name} · ${run.id.slice(-6)}` : run.id.slice(-6)}
        title={
          automation.data ? (
            <>
              Run of <Link href={`/automations/${run.automation}`}>{automation.data.name}</Link>
            </>
          ) : (
            'Run'
          )
        }
        lead={
          <>
            <State value={shown} /> · {run.status === 'pending' ? 'created' : 'started'} <Time at={run.created_at} /> ·{' '}
            {run.started_at === undefined ? null : `${took(run)} · `}
            <Id id={run.id} label={`…${run.id.slice(-8)}`} />
            {run.retried_from === undefined ? null : (
              <>
                {' '}
                · <Link href={`/runs/${run.retried_from}`}>retry of an earlier run</Link> (
                <Link href={`/runs/${run.id}/compare`}>compare</Link>)
              </>
            )}
          </>
        }
      >
        {over ? null : <Live error={journal.error ?? failure} />}
        {isDeveloper && !over ? (
          <>
            <Button kind={signals.length > 0 ? 'primary' : 'plain'} onClick={() => setAsking('signal')}>
              Send a signal
            </Button>
            <Button kind="danger" onClick={() => setAsking('cancel')}>
              Cancel
            </Button>
          </>
        ) : null}
        {isDeveloper && over && run.status !== 'completed' && run.workflow_version !== undefined ? (
          <Button kind="primary" onClick={() => setAgain('failure')}>
            Continue from the failure
          </Button>
        ) : null}
        {isDeveloper && over ? (
          <Button busy={retry.busy} onClick={() => retry.run()}>
            Run again
          </Button>
        ) : null}
      </PageHead>
      <ErrorNotice error={retry.error} />
      {run.error ? <Failure error={run.error} /> : null}
      {run.status === 'pending' ? <Pending run={run} /> : null}
      {waits.length > 0 ? <WaitList waits={waits} /> : null}
      {over ? <Retries run={run.id} /> : null}
      <Progress
        run={run}
        journal={journal}
        executions={state.executions}
        byNode={state.byNode}
        onAgain={isDeveloper && over && run.workflow_version !== undefined ? setAgain : undefined}
      />
      {again === undefined ? null : (
        <RunAgain run={run} execution={again} entries={journal.entries} onClose={() => setAgain(undefined)} />
      )}
      {asking === 'cancel' ? (
        <Confirm
          title="Cancel this run?"
          action="Cancel the run"
          busy={cancel.busy}
          error={cancel.error}
          onClose={() => setAsking(undefined)}
          onConfirm={async () => {
            if (await cancel.run()) setAsking(undefined);
          }}
        >
          Completed steps are not undone. No further step starts.
        </Confirm>
      ) : null}
      {asking === 'signal' ? (
        <Signal run={run} suggestion={signals[0] ?? ''} onClose={() => setAsking(undefined)} onSent={onChange} />
      ) : null}
    </>
  );
}

function Failure({ error }: { error: NonNullable<AutomationRun['error']> }) {
  return (
    <div className="notice error" role="alert">
      <p>
        <strong>{error.code}</strong> {error.message}
      </p>
      {error.node_id === undefined ? null : (
        <p>
          In the node <code>{error.node_id}</code>. Select it to see its input; correct the automation and run it again.
        </p>
      )}
    </div>
  );
}

/** Runs that continue or repeat this one. */
function Retries({ run }: { run: string }) {
  const retries = useApi('GET /api/v1/automation_runs', { query: { retried_from: run } });
  const rows = retries.data?.data ?? [];
  if (rows.length === 0) return null;
  return (
    <p className="faint">
      Run again:{' '}
      {rows.map((one) => (
        <span key={one.id}>
          <Link href={`/runs/${one.id}`}>{one.id}</Link> <State value={one.status} />{' '}
        </span>
      ))}
    </p>
  );
}

/** Why a run has not started. */
function Pending({ run: { pending_for, workflow_version } }: { run: AutomationRun }) {
  if (pending_for === undefined && workflow_version !== undefined) return null;
  return (
    <section className="notice warning" aria-label="Has not started">
      <p>This run {pending_for ? <PendingFor pending={pending_for} /> : 'waits until a worker of yours claims it.'}</p>
    </section>
  );
}

const waitsShown = 5;

/** What the run waits for, and until when. */
function WaitList({ waits }: { waits: Execution[] }) {
  return (
    <section className="notice warning" aria-label="Waits for">
      <ul>
        {waits.slice(0, waitsShown).map((one) =>
          one.waits ? (
            <li key={one.commandId}>
              <code>{one.nodeId}</code>
              {one.index === undefined ? '' : ` [${one.index}]`} waits for <Waits waits={one.waits} />
              {one.attempts > 1 || one.state === 'retrying' ? ` after ${one.attempts} attempts` : ''}
            </li>
          ) : null,
        )}
      </ul>
      {waits.length > waitsShown ? <p className="faint">and {waits.length - waitsShown} more</p> : null}
    </section>
  );
}

function Facts({ run }: { run: AutomationRun }) {
  const { isDeveloper } = useSession();
  const link = (path: string, id: string) => (
    <Link href={`${path}/${id}`}>
      <code>{id}</code>
    </Link>
  );
  return (
    <details className="card facts">
      <summary>Details</summary>
      <Details
        rows={[
          ['Automation', isDeveloper ? link('/automations', run.automation) : <Id key="id" id={run.automation} />],
          ['Graph version', run.workflow_version],
          [
            'Started by',
            run.type === 'invoked' ? 'an invocation' : run.type === 'scheduled' ? 'a schedule' : 'an event',
          ],
          ['Invoked by', run.invoked_by ? <PrincipalName key="by" id={run.invoked_by} /> : null],
          ['Parent run', run.parent_run ? link('/runs', run.parent_run) : null],
          ['Event', run.event_id ? <Id key="event" id={run.event_id} /> : null],
          ['Began', <Time key="began" at={run.started_at} />],
          ['Ended', run.completed_at ? <Time key="ended" at={run.completed_at} /> : null],
        ]}
      />
      {isDeveloper && isOver(run) ? <LedgerLine /> : null}
    </details>
  );
}

/** Graph, waterfall, values and journal. A selected node is shown beside them. */
function Progress({
  run,
  journal,
  executions,
  byNode,
  onAgain,
}: {
  run: AutomationRun;
  journal: Journal;
  onAgain: ((execution: Execution) => void) | undefined;
  executions: Execution[];
  byNode: Map<string, Execution>;
}) {
  const { isDeveloper } = useSession();
  const [command, setCommand] = useState<string>();
  const [tab, setTab] = useState<'graph' | 'waterfall'>('graph');
  const version = useApi(
    'GET /api/v1/automations/{automation}/versions/{version}',
    { path: { automation: run.automation, version: String(run.workflow_version) } },
    { enabled: isDeveloper && run.workflow_version !== undefined },
  );
  // A generate node may also be inside of a for_each.
  const isWriting = JSON.stringify(version.data?.workflow ?? {}).includes('"kind":"generate"');
  const chosen = executions.find((one) => one.commandId === command);
  const states = useMemo(() => new Map([...byNode].map(([node, one]) => [node, one.state])), [byNode]);
  const from = Date.parse(run.started_at ?? run.created_at);
  const to = run.completed_at === undefined ? Date.now() : Date.parse(run.completed_at);
  const waterfall = <Waterfall executions={executions} from={from} to={to} chosen={command} onChoose={setCommand} />;
  const graph = version.data ? (
    <Graph
      workflow={version.data.workflow}
      states={states}
      chosen={chosen?.parent === undefined ? chosen?.nodeId : undefined}
      onChoose={(node) => setCommand(node === undefined ? undefined : byNode.get(node)?.commandId)}
    />
  ) : null;
  return (
    <div className="run">
      <div className="stack">
        {isWriting && !isOver(run) ? <Writing run={run.id} /> : null}
        {executions.length === 0 && graph === null ? null : (
          <section className="card" aria-label="Progress">
            {graph === null ? (
              waterfall
            ) : (
              <Tabs
                label="Views of the run"
                value={tab}
                onChange={setTab}
                tabs={[
                  { id: 'graph', name: 'Graph', panel: graph },
                  { id: 'waterfall', name: 'Waterfall', panel: waterfall },
                ]}
              />
            )}
          </section>
        )}
        <Facts run={run} />
        <section className="card">
          <h2>Input</h2>
          <Json value={run.payload ?? null} label="Input of the run" />
        </section>
        <section className="card">
          <h2>Result</h2>
          {run.result === undefined ? (
            <p className="faint">{isOver(run) ? 'None.' : 'Available when the run is completed.'}</p>
          ) : (
            <Json value={run.result} label="Result of the run" />
          )}
        </section>
        <MadeFiles key={run.status} run={run} />
      </div>
      <div className="stack">
        {chosen ? (
          <NodePanel
            run={run.id}
            execution={chosen}
            executions={executions}
            onChoose={setCommand}
            onAgain={onAgain && (() => onAgain(chosen))}
            onClose={() => setCommand(undefined)}
          />
        ) : null}
        <Timeline journal={journal} node={chosen?.nodeId} onAll={() => setCommand(undefined)} />
      </div>
    </div>
  );
}

/** The duration of a run so far. */
export function took({ started_at, completed_at }: Pick<AutomationRun, 'started_at' | 'completed_at'>): string {
  if (started_at === undefined) return '–';
  return duration((completed_at === undefined ? Date.now() : Date.parse(completed_at)) - Date.parse(started_at));
}

function Signal({
  run,
  suggestion,
  onSent,
  onClose,
}: {
  run: AutomationRun;
  suggestion: string;
  onSent: (run: AutomationRun) => void;
  onClose: () => void;
}) {
  const [name, setName] = useState(suggestion);
  const [payload, setPayload] = useState('{}');
  const send = useAction(
    async () => {
      const body = { name, payload: parseJson(payload) };
      const path = { automation_run: run.id };
      onSent(await call('POST /api/v1/automation_runs/{automation_run}/signal', { path, body }));
      onClose();
    },
    { say: 'The signal was sent.' },
  );
  return (
    <Dialog title="Send a signal" onClose={onClose}>
      <Form
        submit="Send"
        busy={send.busy}
        error={send.error}
        shownFields={['name']}
        onSubmit={() => send.run()}
        onCancel={onClose}
      >
        <Field
          label="Name"
          hint="The signal that a wait_for_signal node waits for."
          error={fieldError(send.error, 'name')}
        >
          {(id, described) => (
            <input id={id} {...described} required value={name} onChange={(event) => setName(event.target.value)} />
          )}
        </Field>
        <CodeField
          label="Payload"
          hint="JSON: the output of the node."
          rows={4}
          value={payload}
          onChange={setPayload}
        />
      </Form>
    </Dialog>
  );
}
