import { useEffect, useMemo, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { call, urlOf } from '../../api/client.ts';
import type { AutomationRun, WorkflowJournal, WorkflowJournalEntry } from '../../api/generated.ts';
import { readEvents } from '../../api/stream.ts';
import { useSession } from '../../session.tsx';
import { Button, CodeField, Empty, ErrorNotice, Field, Json, PageHead, Shown, State, Time } from '../../ui/basics.tsx';
import { Confirm, Dialog, Form } from '../../ui/dialog.tsx';
import { parseJson } from '../../ui/json.ts';
import { asApiError, useAction, useLoad } from '../../ui/use-load.ts';
import { took } from './automation-page.tsx';
import { Graph, type NodeState } from './graph.tsx';

const journalPollMs = 700;
const entriesMax = 10_000;
const entriesShown = 200;

const isOver = ({ status }: AutomationRun) => ['completed', 'failed', 'cancelled'].includes(status);

/** One run, live: its status, the graph with the state of each node, and the journal. */
export function RunPage({ id }: { id: string }) {
  const path = { automation_run: id };
  const run = useLoad(
    id,
    () => call('GET /api/v1/automation_runs/{automation_run}', { path }),
    // Only invoked runs have a stream; the others are polled.
    (found) => (found.type !== 'invoked' && !isOver(found) ? journalPollMs : undefined),
  );
  const { data, replace } = run;
  const streamed = data?.type === 'invoked' && !isOver(data);
  useEffect(() => {
    if (!streamed) return;
    const ended = new AbortController();
    const url = urlOf('/api/v1/automation_runs/{automation_run}/stream', { automation_run: id });
    void readEvents<AutomationRun>(
      url,
      (now) => {
        replace(now);
        return isOver(now);
      },
      ended.signal,
    );
    return () => ended.abort();
  }, [id, streamed, replace]);
  const journal = useJournal(id, data === undefined ? undefined : `${data.status}/${data.updated_at}`);

  return (
    <>
      <p className="back">
        <Link href={data ? `/runs/automations/${data.automation}` : '/runs'}>← Automation</Link>
      </p>
      <Shown loaded={run}>{(found) => <RunBody run={found} journal={journal} onChange={run.replace} />}</Shown>
    </>
  );
}

type Journal = {
  about: WorkflowJournal | null | undefined;
  entries: WorkflowJournalEntry[];
  error: ReturnType<typeof asApiError> | undefined;
};

/** The journal from its beginning. Reads further entries whenever the run has changed or is active. */
function useJournal(run: string, change: string | undefined): Journal {
  const [state, setState] = useState<Journal>({ about: undefined, entries: [], error: undefined });
  const known = useRef<WorkflowJournalEntry[]>([]);
  const cursor = useRef<string>(undefined);
  useEffect(() => {
    if (change === undefined) return;
    let current = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const over = /^(completed|failed|cancelled)/.test(change);
    const read = async () => {
      try {
        for (;;) {
          const page = await call('GET /api/v1/automation_runs/{automation_run}/journal', {
            path: { automation_run: run },
            query: { limit: 100, ...(cursor.current === undefined ? {} : { after_cursor: cursor.current }) },
          });
          if (!current) return;
          known.current = [...known.current, ...page.data];
          cursor.current = page.resume_cursor ?? cursor.current;
          setState({ about: page.journal, entries: known.current, error: undefined });
          if (!page.has_more || known.current.length >= entriesMax) break;
        }
        if (!over) timer = setTimeout(read, journalPollMs);
      } catch (error) {
        if (current) setState((now) => ({ ...now, error: asApiError(error) }));
      }
    };
    void read();
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [run, change]);
  return state;
}

function RunBody({
  run,
  journal,
  onChange,
}: {
  run: AutomationRun;
  journal: Journal;
  onChange: (run: AutomationRun) => void;
}) {
  const { isDeveloper } = useSession();
  const [, navigate] = useLocation();
  const [asking, setAsking] = useState<'cancel' | 'signal'>();
  const [node, setNode] = useState<string>();
  const path = { automation_run: run.id };
  const automation = useLoad(isDeveloper ? run.automation : 'none', async () =>
    isDeveloper ? call('GET /api/v1/automations/{automation}', { path: { automation: run.automation } }) : undefined,
  );
  const states = useMemo(() => nodeStates(journal.entries), [journal.entries]);
  const waitsFor = useMemo(() => awaitedSignals(journal.entries), [journal.entries]);
  const cancel = useAction(async () =>
    onChange(await call('POST /api/v1/automation_runs/{automation_run}/cancel', { path })),
  );
  const retry = useAction(async () => {
    const again = await call('POST /api/v1/automation_runs/{automation_run}/retry', { path });
    navigate(`/runs/${again.id}`);
  });
  const over = isOver(run);
  return (
    <>
      <PageHead
        title={automation.data ? `Run of ${automation.data.name}` : 'Run'}
        lead={
          <>
            <State value={journal.about?.status === 'waiting' && !over ? 'waiting' : run.status} /> started{' '}
            <Time at={run.created_at} /> · {took(run)}
            {run.retried_from === undefined ? null : (
              <>
                {' '}
                · <Link href={`/runs/${run.retried_from}`}>again after</Link>
              </>
            )}
          </>
        }
      >
        {over ? null : <span className="live">Live</span>}
        {isDeveloper && !over ? (
          <>
            <Button kind={waitsFor.length > 0 ? 'primary' : 'plain'} onClick={() => setAsking('signal')}>
              Send a signal
            </Button>
            <Button kind="danger" onClick={() => setAsking('cancel')}>
              Cancel
            </Button>
          </>
        ) : null}
        {isDeveloper && over ? (
          <Button busy={retry.busy} onClick={() => retry.run()}>
            Run again
          </Button>
        ) : null}
      </PageHead>
      <ErrorNotice error={retry.error} />
      {run.error ? (
        <div className="notice error" role="alert">
          <p>
            <strong>{run.error.code}</strong> {run.error.message}
          </p>
          {run.error.node_id === undefined ? null : (
            <p>
              In the node <code>{run.error.node_id}</code>. Its journal entries show its input; correct the automation
              and run it again.
            </p>
          )}
        </div>
      ) : null}
      <div className="run">
        <div className="stack">
          {automation.data ? (
            <section className="card" aria-label="Graph">
              <Graph workflow={automation.data.workflow} states={states} chosen={node} onChoose={setNode} />
            </section>
          ) : null}
          <section className="card">
            <h2>Input</h2>
            <Json value={run.payload ?? null} />
          </section>
          <section className="card">
            <h2>Result</h2>
            {run.result === undefined ? (
              <p className="faint">{over ? 'None.' : 'Available when the run is completed.'}</p>
            ) : (
              <Json value={run.result} />
            )}
          </section>
        </div>
        <Timeline journal={journal} node={node} onAll={() => setNode(undefined)} />
      </div>
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
        <Signal run={run} suggestion={waitsFor[0] ?? ''} onClose={() => setAsking(undefined)} onSent={onChange} />
      ) : null}
    </>
  );
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
  const send = useAction(async () => {
    const body = { name, payload: parseJson(payload) };
    onSent(
      await call('POST /api/v1/automation_runs/{automation_run}/signal', { path: { automation_run: run.id }, body }),
    );
    onClose();
  });
  return (
    <Dialog title="Send a signal" onClose={onClose}>
      <Form submit="Send" busy={send.busy} error={send.error} onSubmit={() => send.run()} onCancel={onClose}>
        <Field label="Name" hint="The signal that a wait_for_signal node waits for.">
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

function Timeline({ journal, node, onAll }: { journal: Journal; node: string | undefined; onAll: () => void }) {
  const [most, setMost] = useState(entriesShown);
  const entries = node === undefined ? journal.entries : journal.entries.filter((entry) => entry.node_id === node);
  return (
    <section className="card" aria-label="Journal">
      <div className="toolbar">
        <h2>{node === undefined ? 'Journal' : `Journal of ${node}`}</h2>
        {node === undefined ? null : <Button onClick={onAll}>Show all</Button>}
      </div>
      <ErrorNotice error={journal.error} />
      {entries.length === 0 && journal.about !== undefined ? (
        <Empty title="No entries yet">
          {journal.about === null
            ? 'Runs that an external worker executes have no journal.'
            : 'Entries appear here as they are written.'}
        </Empty>
      ) : null}
      <ol className="journal">
        {entries.slice(0, most).map((entry) => (
          <Entry key={entry.id} entry={entry} />
        ))}
      </ol>
      {entries.length > most ? (
        <Button onClick={() => setMost(most + entriesShown)}>Show more of {entries.length} entries</Button>
      ) : null}
    </section>
  );
}

function Entry({ entry: { sequence, type, node_id, record, created_at } }: { entry: WorkflowJournalEntry }) {
  const [open, setOpen] = useState(false);
  const metadata = (record.metadata ?? {}) as { attempt?: number; duration_ms?: number };
  return (
    <li className={toneOf(type)}>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span className="sequence">{sequence}</span>
          <span className="what">
            {type.replaceAll('_', ' ')} {node_id === undefined ? null : <code>{node_id}</code>}
          </span>
          <span className="faint">
            {metadata.attempt !== undefined && metadata.attempt > 1 ? `attempt ${metadata.attempt} · ` : ''}
            {metadata.duration_ms === undefined ? '' : `${Math.round(metadata.duration_ms)} ms · `}
            <time dateTime={created_at}>{new Date(created_at).toLocaleTimeString('en-GB')}</time>
          </span>
        </summary>
        {open ? <Json value={record} /> : null}
      </details>
    </li>
  );
}

function toneOf(type: string): string {
  if (/failed|timed_out|cancel/.test(type)) return 'bad';
  return /completed|received|fired|ended/.test(type) ? 'good' : 'active';
}

/** The state of each node, from its last journal entry. */
function nodeStates(entries: WorkflowJournalEntry[]): Map<string, NodeState> {
  const states = new Map<string, NodeState>();
  for (const { node_id, type, record } of entries) {
    if (node_id === undefined) continue;
    // Nodes inside another node are not drawn; the outer node stands for them.
    if ((record.metadata as { parent_command_id?: string } | undefined)?.parent_command_id !== undefined) continue;
    const state = stateAfter[type];
    if (state !== undefined) states.set(node_id, state);
  }
  return states;
}

const stateAfter: Record<string, NodeState> = {
  node_started: 'running',
  node_completed: 'done',
  node_failed: 'failed',
  node_retry_scheduled: 'waiting',
  timer_started: 'waiting',
  signal_waiting: 'waiting',
  child_run_started: 'waiting',
  signal_timed_out: 'failed',
};

/** Names of the signals that the run is waiting for. */
function awaitedSignals(entries: WorkflowJournalEntry[]): string[] {
  const waiting = new Map<string, string>();
  for (const { type, command_id = '', record } of entries) {
    if (type === 'signal_waiting') {
      const input = ((record.context as { input?: { name?: string } } | undefined)?.input ?? record.payload ?? {}) as {
        name?: string;
      };
      waiting.set(command_id, input.name ?? '');
    } else if (type === 'node_completed' || type === 'node_failed') waiting.delete(command_id);
  }
  return [...waiting.values()].filter((name) => name !== '');
}
