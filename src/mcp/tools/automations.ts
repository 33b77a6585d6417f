import type { Static } from 'typebox';
import { strict } from '../../http/route/route.ts';
import { defined } from '../../lib/defined.ts';
import { mapOf } from '../../lib/map-schema.ts';
import { Type } from '../../lib/type.ts';
import {
  defineTool,
  optionalText,
  type Page,
  pageInput,
  pageOf,
  pageOutput,
  secondsToWait,
  type Tool,
  type ToolContext,
  type ToolResult,
  toolLimits,
  truncateJson,
  type Work,
  type WorkKind,
  waitFor,
  waitInput,
  workLeft,
} from '../tool.ts';

type Automation = {
  id: string;
  name: string;
  lookup_key?: string;
  description?: string;
  type: string;
  status: string;
  input_schema: unknown;
};
type Run = {
  id: string;
  automation: string;
  type: string;
  status: string;
  result?: unknown;
  error?: { code: string; message: string; node_id?: string };
  waiting_for?: { kind: string; node_id?: string; approval?: string; name?: string; until?: string };
  started_at?: string;
  completed_at?: string;
  created_at: string;
  updated_at: string;
};
type Entry = { sequence: number; type: string; node_id?: string; record: { payload?: unknown }; created_at: string };
type JournalPage = { data: Entry[]; has_more: boolean; resume_cursor?: string };

const journalPageSize = 50;

const pathOf = (run: string) => `/api/v1/automation_runs/${encodeURIComponent(run)}`;

const listAutomations = defineTool({
  name: 'list_automations',
  title: 'List automations',
  operation: 'listAutomations',
  description:
    'Lists the automations of the app, newest first. Requires a secret key or a developer token; others call list_invocable_automations.',
  hints: { reads: true },
  input: strict({
    type: Type.Optional(Type.Enum(['trigger', 'scheduled', 'invoked'])),
    status: Type.Optional(Type.Enum(['draft', 'running', 'paused'])),
    page: pageInput,
  }),
  output: Type.Object({
    automations: Type.Array(
      Type.Object({
        id: Type.String(),
        name: Type.String(),
        lookup_key: optionalText,
        description: optionalText,
        type: Type.String(),
        status: Type.String(),
        input_schema: Type.Optional(Type.Unknown()),
        input_schema_cut: optionalText,
      }),
    ),
    ...pageOutput,
  }),
  async run({ type, status, page }, { api }) {
    const found = await api<Page<Automation>>('GET', '/api/v1/automations', { query: { type, status, page } });
    const automations = found.data.map((each) => {
      const { id, name, ...more } = presentInvocable(each);
      return { id, name, type: each.type, status: each.status, ...more };
    });
    return { data: { automations, ...pageOf(found) } };
  },
});

const listInvocable = defineTool({
  name: 'list_invocable_automations',
  title: 'List what you may invoke',
  operation: 'listInvocableAutomations',
  description: 'Lists the automations that you may invoke now, newest first. Pass their ids to invoke_automation.',
  hints: { reads: true },
  input: strict({ page: pageInput }),
  output: Type.Object({
    automations: Type.Array(
      Type.Object({
        id: Type.String(),
        name: Type.String(),
        lookup_key: optionalText,
        description: optionalText,
        input_schema: Type.Optional(Type.Unknown()),
        input_schema_cut: optionalText,
      }),
    ),
    ...pageOutput,
  }),
  async run({ page }, { api }) {
    const found = await api<Page<Automation>>('GET', '/api/v1/invocable_automations', { query: { page } });
    const automations = found.data.map(presentInvocable);
    return { data: { automations, ...pageOf(found) } };
  },
});

function presentInvocable({ id, name, lookup_key, description, input_schema }: Automation) {
  return {
    id,
    name,
    ...defined({ lookup_key, description }),
    ...truncateJson('input_schema', input_schema, toolLimits.jsonCharactersMax),
  };
}

const runMembers = {
  run: Type.String({ description: 'atr_…; pass it to read_run.' }),
  automation: Type.String(),
  status: Type.Enum(['pending', 'running', 'completed', 'failed', 'cancelled']),
  result: Type.Optional(Type.Unknown()),
  result_cut: Type.Optional(Type.String({ description: 'The beginning of a result that is too long.' })),
  error: Type.Optional(
    Type.Object({ code: Type.String(), message: Type.String(), node_id: Type.Optional(Type.String()) }),
  ),
  waiting_for: Type.Optional(
    Type.Object(
      {
        kind: Type.String({ description: 'approval, signal, child, time, retry or worker.' }),
        node: optionalText,
        approval: optionalText,
        url: Type.Optional(Type.String({ description: 'Where people answer. Give it to the user.' })),
        name: Type.Optional(Type.String({ description: 'The signal.' })),
        until: optionalText,
      },
      { description: 'What a run in progress waits for.' },
    ),
  ),
  started_at: optionalText,
  completed_at: optionalText,
};
const runAnswer = Type.Object(runMembers);

const invokeAutomation = defineTool({
  name: 'invoke_automation',
  title: 'Invoke an automation',
  operation: 'invokeAutomation',
  description:
    'Starts a run and waits for its result. If the run takes longer or waits for people to approve something, returns its status and its id for read_run.',
  hints: { reads: false, destroys: true, reachesOut: true },
  input: strict({
    automation: Type.String({ description: 'aut_… or its lookup key.' }),
    payload: Type.Optional(mapOf(Type.Unknown())),
    idempotency_key: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, description: 'A repeated key returns the first run.' }),
    ),
    wait_seconds: waitInput,
  }),
  output: runAnswer,
  async run({ automation, wait_seconds: wait, ...body }, context) {
    const path = `/api/v1/automations/${encodeURIComponent(automation)}/invoke`;
    return waitForPeople(context, await context.api<Run>('POST', path, { body }), wait);
  },
});

const readRun = defineTool({
  name: 'read_run',
  title: 'Read a run',
  operation: 'getAutomationRun',
  description:
    'Returns the status and result of a run, and its journal in order. Pass resume_cursor as after_cursor to get later entries.',
  hints: { reads: true },
  input: strict({
    run: Type.String({ description: 'atr_…' }),
    after_cursor: Type.Optional(Type.String({ maxLength: 500 })),
    wait_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: toolLimits.waitSecondsMax,
        description: 'Maximum seconds to wait while the run is in progress. Default 0.',
      }),
    ),
  }),
  output: Type.Object({
    ...runMembers,
    journal: Type.Array(
      Type.Object({
        sequence: Type.Integer(),
        type: Type.String(),
        node: optionalText,
        payload: Type.Optional(Type.Unknown()),
        payload_cut: optionalText,
        created_at: Type.String(),
      }),
    ),
    has_more: Type.Boolean({ description: 'Whether the journal has more entries.' }),
    resume_cursor: optionalText,
  }),
  async run({ run: id, after_cursor, wait_seconds: wait = 0 }, context) {
    const path = pathOf(id);
    const run = await waitForEnd(context, await context.api<Run>('GET', path), wait);
    const page = await context.api<JournalPage>('GET', `${path}/journal`, {
      query: { limit: journalPageSize, after_cursor },
    });
    const journal = page.data.map(({ sequence, type, node_id, record, created_at }) => ({
      sequence,
      type,
      created_at,
      ...defined({ node: node_id }),
      ...truncateJson('payload', record.payload, toolLimits.jsonCharactersMax / 4),
    }));
    const cursor = page.resume_cursor === undefined ? {} : { resume_cursor: page.resume_cursor };
    return { data: { ...present(run, context), journal, has_more: page.has_more, ...cursor } };
  },
});

const runInput = Type.String({ description: 'atr_…' });

const signalRun = defineTool({
  name: 'signal_run',
  title: 'Signal a run',
  operation: 'signalAutomationRun',
  description:
    'Sends a signal to a run in progress, which waits for it now or later. Requires a secret key or a developer token.',
  hints: { reads: false },
  input: strict({
    run: runInput,
    name: Type.String({ minLength: 1, maxLength: 200, description: 'The signal that the run waits for.' }),
    payload: Type.Optional(Type.Unknown()),
  }),
  output: runAnswer,
  async run({ run: id, ...body }, context) {
    const run = await context.api<Run>('POST', `${pathOf(id)}/signal`, { body });
    return { data: present(run, context) };
  },
});

const cancelRun = defineTool({
  name: 'cancel_run',
  title: 'Cancel a run',
  operation: 'cancelAutomationRun',
  description:
    'Cancels a run that is pending or in progress, and returns it. Requires a secret key or a developer token.',
  hints: { reads: false, destroys: true },
  input: strict({ run: runInput }),
  output: runAnswer,
  async run({ run: id }, context) {
    const run = await context.api<Run>('POST', `${pathOf(id)}/cancel`);
    return { data: present(run, context) };
  },
});

const retryRun = defineTool({
  name: 'retry_run',
  title: 'Retry a run',
  operation: 'retryAutomationRun',
  description:
    'Starts a new run with the payload of one that ended, and waits for its result like invoke_automation. Requires a secret key or a developer token.',
  hints: { reads: false, destroys: true, reachesOut: true },
  input: strict({ run: runInput, wait_seconds: waitInput }),
  output: runAnswer,
  async run({ run, wait_seconds: wait }, context) {
    const started = await context.api<Run>('POST', `${pathOf(run)}/retry`);
    return waitForPeople(context, started, wait);
  },
});

const emitEvent = defineTool({
  name: 'emit_event',
  title: 'Emit an event',
  operation: 'emitEvent',
  description:
    'Emits an event of your own, such as order.paid: automations with this trigger start, and webhooks receive it. Requires a secret key or a developer token.',
  hints: { reads: false, reachesOut: true },
  input: strict({
    name: Type.String({ minLength: 1, maxLength: 200, description: 'Such as order.paid.' }),
    payload: Type.Optional(mapOf(Type.Unknown())),
  }),
  output: Type.Object({ event: Type.String(), name: Type.String() }),
  async run(body, { api }) {
    const { id, name } = await api<{ id: string; name: string }>('POST', '/api/v1/events', { body });
    return { data: { event: id, name } };
  },
});

const isOver = ({ status }: Run) => status !== 'pending' && status !== 'running';

/** Waits for the end of a run, or until it waits for people: the user must learn where to answer. */
async function waitForPeople(
  context: ToolContext,
  started: Run,
  given: number | undefined,
): Promise<ToolResult<Static<typeof runAnswer>>> {
  const waits = (run: Run) => run.waiting_for?.kind === 'approval';
  const seconds = secondsToWait(context, given);
  const run = await waitForEnd(context, started, seconds, (each) => isOver(each) || waits(each));
  return { data: present(run, context), ...workLeft(workOf(run, context), seconds) };
}

function waitForEnd(context: ToolContext, started: Run, seconds: number, ended = isOver): Promise<Run> {
  let looks = 0;
  return waitFor(context, started, seconds, {
    look: () => context.api<Run>('GET', pathOf(started.id)),
    ended,
    tell: async ({ status }) => {
      looks += 1;
      await context.report(looks, undefined, `The run is ${status}.`);
    },
  });
}

function present(run: Run, { baseUrl }: ToolContext): Static<typeof runAnswer> {
  return {
    run: run.id,
    automation: run.automation,
    status: run.status as Static<typeof runAnswer>['status'],
    ...truncateJson('result', run.result, toolLimits.resultCharactersMax),
    ...defined({ error: run.error, started_at: run.started_at, completed_at: run.completed_at }),
    ...(run.waiting_for === undefined ? {} : { waiting_for: presentWait(run.waiting_for, baseUrl) }),
  };
}

function workOf(run: Run, { baseUrl }: ToolContext): Work {
  const { id, status, waiting_for: waiting, created_at: createdAt, updated_at: updatedAt } = run;
  const { approval, url } = waiting === undefined ? {} : presentWait(waiting, baseUrl);
  const asks = approval !== undefined && url !== undefined;
  return {
    ...{ id, createdAt, updatedAt },
    status: status === 'cancelled' ? 'cancelled' : isOver(run) ? 'completed' : 'working',
    message: asks ? `The run waits for people, who answer at ${url}` : `The run is ${status}.`,
    ...(asks ? { approval: { id: approval, url } } : {}),
  };
}

export const runWork: WorkKind = {
  idPrefix: 'atr_',
  async find(context, id) {
    const run = await context.api<Run>('GET', pathOf(id));
    return { work: workOf(run, context), show: async () => ({ data: present(run, context) }) };
  },
  cancel: ({ api }, id) => api('POST', `${pathOf(id)}/cancel`),
};

function presentWait({ kind, node_id: node, approval, name, until }: NonNullable<Run['waiting_for']>, baseUrl: string) {
  const url = approval === undefined ? undefined : `${baseUrl}/console/approvals?approval=${approval}`;
  return { kind, ...defined({ node, approval, url, name, until }) };
}

export const automationTools: readonly Tool[] = [
  listAutomations,
  listInvocable,
  invokeAutomation,
  readRun,
  signalRun,
  cancelRun,
  retryRun,
  emitEvent,
];
