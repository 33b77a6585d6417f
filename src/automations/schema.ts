import type { Static } from 'typebox';
import { freeMap, ref, strict } from '../http/route/route.ts';
import { jsonBytes } from '../http/route/validation.ts';
import { streamPositionSchema } from '../http/streams/schema.ts';
import { limits } from '../lib/limits.ts';
import { mapOf } from '../lib/map-schema.ts';
import { nameSchema } from '../lib/name-schema.ts';
import { pattern } from '../lib/patterns.ts';
import { Type } from '../lib/type.ts';
import { runRetentionSchema } from '../tenancy/run-retention.ts';

const optionalText = Type.Optional(Type.String());
const nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()]);

const type = Type.Enum(['trigger', 'scheduled', 'invoked']);
const runStatus = Type.Enum(['pending', 'running', 'completed', 'failed', 'cancelled']);
const invokeAuth = Type.Enum(['any', 'secret_key', 'user']);

/** The graph in responses. `checkGraph` checks the graph of a request. */
const graphResponse = Type.Unsafe<unknown>({
  ...Type.Union([mapOf(Type.Unknown()), Type.Null()]),
  description:
    'The WorkflowGraph; the WorkflowProgram whose steps your code executes; or null when an external worker reports on whole runs.',
});
const schemaAnswer = Type.Unsafe<unknown>({
  ...Type.Union([mapOf(Type.Unknown()), Type.Null()]),
  description: 'The JSON Schema that the payload of an invocation must match, or null.',
});

const memberPath = pattern('^[^.]+(\\.[^.]+)*$', 'must be the path of a member, such as customer.id');

const concurrency = strict(
  {
    key: Type.String({
      minLength: 1,
      maxLength: 200,
      ...memberPath,
      description: 'The path of a member of the payload, such as `customer.id`.',
    }),
    limit: Type.Integer({
      minimum: 1,
      maximum: 100_000,
      description: 'How many runs with the same value may be active at the same time.',
    }),
  },
  { description: 'Limits active runs with the same value in their payload. Only with a workflow.' },
);

const rate = strict(
  {
    limit: Type.Integer({ minimum: 1, maximum: 10_000, description: 'How many runs may start in this time.' }),
    per: Type.String({
      ...pattern('^[1-9][0-9]{0,4}[smhd]$', 'must be a number and a unit, such as 30s, 1m, 12h or 1d'),
      description: 'The time: seconds, minutes, hours or a day, such as `30s`, `1m`, `12h` or `1d`, which is the most.',
    }),
    key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 200,
        ...memberPath,
        description:
          'The path of a member of the payload: each of its values has a limit of its own. The same as that of `concurrency`, if both have one.',
      }),
    ),
  },
  { description: 'Limits how many runs start in any time of this length. The others wait. Only with a workflow.' },
);

export const automationSchema = Type.Object(
  {
    id: Type.String({ description: 'aut_…' }),
    app: Type.String(),
    name: Type.String(),
    lookup_key: optionalText,
    description: optionalText,
    type,
    status: Type.Enum(['draft', 'running', 'paused']),
    trigger: Type.Optional(
      Type.String({ description: 'The name of the event that starts a run. Only for type trigger.' }),
    ),
    filter: optionalText,
    schedule: Type.Optional(Type.String({ description: 'A five-field cron expression. Only for type scheduled.' })),
    timezone: Type.String(),
    workflow: graphResponse,
    input_schema: schemaAnswer,
    invoke_auth: invokeAuth,
    run_as_user: optionalText,
    run_as_agent: optionalText,
    paused_reason: optionalText,
    org: optionalText,
    team: optionalText,
    user: optionalText,
    sandbox: optionalText,
    max_concurrent_runs: Type.Optional(Type.Integer()),
    max_pending_runs: Type.Optional(Type.Integer()),
    concurrency: Type.Optional(concurrency),
    rate: Type.Optional(rate),
    timeout_seconds: Type.Optional(Type.Integer()),
    retention: Type.Optional(runRetentionSchema),
    next_run_at: optionalText,
    metadata: mapOf(Type.Unknown()),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Automation', description: 'Defines what runs, when, as whom and in which steps.' },
);

export const invocableAutomationSchema = Type.Object(
  {
    id: Type.String({ description: 'aut_…' }),
    name: Type.String(),
    lookup_key: optionalText,
    description: optionalText,
    input_schema: schemaAnswer,
  },
  { $id: 'InvocableAutomation', description: 'An automation as shown to callers who may invoke it.' },
);

const bounded = (maxLength: number, description?: string) =>
  Type.String({ minLength: 1, maxLength, ...(description === undefined ? {} : { description }) });

/** Not checked here: `checkGraph` reports problems node by node. */
const graphInput = Type.Unsafe<unknown>({
  ...Type.Union([Type.Object({}, { additionalProperties: true }), Type.Null()]),
  description:
    'A graph {kind: "WorkflowGraph", version: 1, start_node, nodes}, a program {kind: "WorkflowProgram", version: 1, name}, or null.',
});
const schemaInput = Type.Unsafe<unknown>({
  ...Type.Union([Type.Object({}, { additionalProperties: true }), Type.Null()]),
  ...jsonBytes(limits.metadataBytesMax),
  description: 'JSON Schema that the payload of an invocation must match, or null.',
});

const settings = {
  name: Type.Optional(nameSchema()),
  lookup_key: Type.Optional(nullable(bounded(200, 'Your own name for it, unique in the app.'))),
  description: Type.Optional(nullable(Type.String({ maxLength: 10_000 }))),
  trigger: Type.Optional(nullable(bounded(200))),
  filter: Type.Optional(nullable(bounded(10_000))),
  schedule: Type.Optional(nullable(bounded(200))),
  timezone: Type.Optional(bounded(100)),
  workflow: Type.Optional(graphInput),
  input_schema: Type.Optional(schemaInput),
  invoke_auth: Type.Optional(invokeAuth),
  run_as_user: Type.Optional(nullable(Type.String())),
  run_as_agent: Type.Optional(nullable(Type.String())),
  max_concurrent_runs: Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: 100_000 }))),
  max_pending_runs: Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: 1_000_000 }))),
  concurrency: Type.Optional(nullable(concurrency)),
  rate: Type.Optional(nullable(rate)),
  timeout_seconds: Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: 366 * 24 * 3_600 }))),
  retention: Type.Optional(nullable(runRetentionSchema)),
  metadata: Type.Optional(freeMap('Stored as given; replaces the whole map.')),
};

export const automationCreateSchema = strict({
  ...settings,
  name: nameSchema(),
  type,
  org: optionalText,
  team: optionalText,
  user: optionalText,
});

export const automationUpdateSchema = strict(settings);

export const automationCheckSchema = strict({
  text: Type.String({
    maxLength: limits.automationTextCharactersMax,
    description: 'In YAML or JSON: the body of POST /automations, or a bare graph.',
  }),
});
export const automationProblemsSchema = Type.Object({
  problems: Type.Array(
    Type.Object({ line: Type.Integer(), column: Type.Integer(), node: optionalText, message: Type.String() }),
    { description: 'With their position in the text, lines and columns from 1; empty when it is valid.' },
  ),
});

const waitingFor = Type.Object(
  {
    kind: Type.Enum(['approval', 'signal', 'child', 'time', 'retry', 'worker'], {
      description:
        'People, a signal, a child, a time, the next attempt of a node, or a worker whose code fits what the run has done so far.',
    }),
    node_id: Type.Optional(Type.String({ description: 'The node that waits.' })),
    approval: Type.Optional(Type.String({ description: 'The approval (`apr_…`).' })),
    name: Type.Optional(Type.String({ description: 'The name of the signal.' })),
    id: Type.Optional(Type.String({ description: 'The child: a run, an extraction or an ingestion.' })),
    until: Type.Optional(Type.String({ description: 'When the wait ends at the latest.' })),
    others: Type.Optional(Type.Integer({ description: 'The number of other nodes that also wait.' })),
    workflow_changed: Type.Optional(
      Type.Object(
        {
          expected: Type.Unknown({ description: 'The step that the journal has.' }),
          found: Type.Unknown({ description: 'What the code asked for instead.' }),
        },
        { description: 'Why the last worker could not continue the run.' },
      ),
    ),
  },
  { description: 'What the run waits for; absent if it does not wait.' },
);

const pendingFor = Type.Object(
  {
    limit: Type.Enum(['max_concurrent_runs', 'concurrency', 'rate'], {
      description: 'The limit of the automation that delays the run.',
    }),
    until: Type.Optional(
      Type.String({
        description:
          'When the rate lets it start, if the runs ahead of it start as soon as they may. Another limit may delay it further.',
      }),
    ),
    ahead: Type.Integer({ description: 'The number of runs that start before it, counted up to 10,000.' }),
  },
  {
    description:
      'Why a run with a workflow has not started yet. Only in the response of GET of one run to a secret key or developer, and only if a limit delays it.',
  },
);

const generationPartSchema = Type.Object(
  {
    node_id: Type.String({ description: 'The node that calls the model.' }),
    command_id: Type.String({ description: 'The command of the journal.' }),
    attempt: Type.Integer({ description: 'The attempt of the command.' }),
    text: Type.Optional(Type.String({ description: 'The next part of the text. Only in `generation_text`.' })),
  },
  { $id: 'GenerationPart', description: 'The data of `generation_started`, `generation_text` and `generation_ended`.' },
);
export const runOutputSchema = Type.Union([ref(generationPartSchema), ref(streamPositionSchema)], {
  $id: 'AutomationRunOutput',
  description: 'The data of an event of the stream of outputs.',
});

export const runSchema = Type.Object(
  {
    id: Type.String({ description: 'atr_…' }),
    app: Type.String(),
    automation: Type.String(),
    type,
    status: runStatus,
    payload: Type.Optional(Type.Unknown()),
    participants: Type.Optional(mapOf(Type.String())),
    result: Type.Optional(Type.Unknown()),
    error: Type.Optional(
      Type.Object({ code: Type.String(), message: Type.String(), node_id: Type.Optional(Type.String()) }),
    ),
    event_id: optionalText,
    invoked_by: Type.Optional(
      Type.String({ description: 'The user or agent; absent for schedules, events and keys.' }),
    ),
    retried_from: optionalText,
    parent_run: optionalText,
    workflow_version: Type.Optional(
      Type.Integer({ description: 'The version of the graph that the run started with; absent without one.' }),
    ),
    waiting_for: Type.Optional(waitingFor),
    pending_for: Type.Optional(pendingFor),
    org: optionalText,
    team: optionalText,
    user: optionalText,
    sandbox: optionalText,
    lease_until: optionalText,
    started_at: optionalText,
    completed_at: optionalText,
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'AutomationRun', description: 'One run of an automation.' },
);

export const claimedRunSchema = Type.Object(
  {
    ...runSchema.properties,
    claim: Type.String({
      description: 'Send it with each report, so that a report after the lease has expired is refused.',
    }),
  },
  { $id: 'ClaimedAutomationRun', description: 'A run that an external worker has claimed.' },
);

const { payload: _payload, participants: _participants, result: _result, ...summary } = runSchema.properties;
const runSummarySchema = Type.Object(
  {
    ...summary,
    automation_name: Type.String(),
    waiting: Type.Boolean({
      description: 'Whether the run is in progress but only waits for a time, a signal or a child run.',
    }),
  },
  { $id: 'AutomationRunSummary', description: 'A run in the list of all runs, without payload and result.' },
);

export const runPageSchema = Type.Object(
  { data: Type.Array(ref(runSummarySchema)), has_more: Type.Boolean(), after_cursor: optionalText },
  { $id: 'AutomationRunPage', description: 'Runs, newest first. `after_cursor` points after the last run returned.' },
);

export const workflowVersionSchema = Type.Object(
  {
    version: Type.Integer(),
    workflow: graphResponse,
    scopes: Type.Optional(
      Type.Array(Type.String(), {
        description: 'The scopes of the key that wrote it. Without them, it has full rights.',
      }),
    ),
    created_at: Type.String(),
  },
  {
    $id: 'WorkflowVersion',
    description: 'The current or an earlier graph of the automation. A run keeps the version it started with.',
  },
);

export const entrySchema = Type.Object(
  {
    id: Type.String({ description: 'wdr_…' }),
    sequence: Type.Integer(),
    type: Type.String(),
    node_id: optionalText,
    command_id: optionalText,
    timer_id: optionalText,
    record: mapOf(Type.Unknown()),
    created_at: Type.String(),
  },
  { $id: 'WorkflowJournalEntry', description: 'One step in the history of a run.' },
);

const journalSchema = Type.Object(
  {
    id: Type.String({ description: 'wde_…' }),
    status: Type.Enum(['pending', 'running', 'waiting', 'completed', 'failed', 'cancelled']),
    current_sequence: Type.Integer(),
    started_at: optionalText,
    completed_at: optionalText,
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'WorkflowJournal' },
);

export const journalPageSchema = Type.Object(
  {
    journal: Type.Union([ref(journalSchema), Type.Null()]),
    data: Type.Array(ref(entrySchema)),
    after_cursor: optionalText,
    has_more: Type.Boolean(),
    resume_cursor: optionalText,
  },
  { $id: 'RunJournalPage', description: 'Entries in order. `resume_cursor` points after the last entry returned.' },
);

export const journalQuery = Type.Object({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: limits.integerMax, description: 'Default 50, at most 100.' }),
  ),
  after_cursor: Type.Optional(Type.String({ maxLength: 500 })),
});

export const listAutomationsQuery = Type.Object({
  type: Type.Optional(type),
  status: Type.Optional(Type.Enum(['draft', 'running', 'paused'])),
  search: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: limits.nameCharactersMax,
      description: 'Part of the name or the lookup key, case-insensitive.',
    }),
  ),
});
const moment = Type.Optional(Type.String({ maxLength: 40, description: 'A time in ISO 8601.' }));
export const listVisibleRunsQuery = Type.Object({
  status: Type.Optional(
    Type.Enum(['pending', 'running', 'waiting', 'completed', 'failed', 'cancelled'], {
      description: '`waiting`: in progress, but only waiting for a time, a signal or a child run.',
    }),
  ),
  automation: Type.Optional(Type.String({ maxLength: 300, description: 'The id or lookup key of an automation.' })),
  retried_from: Type.Optional(
    Type.String({ maxLength: 100, description: 'Only runs that repeat or continue this run.' }),
  ),
  since: moment,
  until: moment,
  search: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: limits.nameCharactersMax,
      description: 'The id of a run, or part of the name or lookup key of its automation.',
    }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: limits.integerMax, description: 'Default 25, at most 100.' }),
  ),
  after_cursor: Type.Optional(Type.String({ maxLength: 500 })),
});
export const listRunsQuery = Type.Object({ status: Type.Optional(runStatus) });

const invokeMembers = strict({
  payload: Type.Optional(freeMap('Available to the graph as `$`; validated against `input_schema`.')),
  participants: Type.Optional(mapOf(Type.String(), { maxProperties: 100, ...jsonBytes(65_536) })),
  idempotency_key: Type.Optional(bounded(255, 'The same key returns the first run again, for at least a day.')),
});
/** All members are optional, and so is the body, which is null if absent. */
export const invokeSchema = Type.Unsafe<Static<typeof invokeMembers> | null>({
  ...invokeMembers,
  type: ['object', 'null'],
});

const retryMembers = strict({
  from: Type.Optional(
    Type.Union(
      [
        Type.Literal('failure'),
        strict({
          node: bounded(100, 'The node that runs again; what follows it also does.'),
          sequence: Type.Optional(
            Type.Integer({
              minimum: 1,
              maximum: limits.integerMax,
              description: 'The `node_started` entry to continue from. Required if the node ran more than once.',
            }),
          ),
        }),
      ],
      {
        description:
          'Keeps what the run did before this node, or with `failure` everything that it finished. Without it, the new run starts from the beginning with the current workflow.',
      },
    ),
  ),
  outputs: Type.Optional(
    mapOf(Type.Unknown(), {
      maxProperties: 500,
      description: 'Outputs, by node, that replace the kept ones. Only with `from`.',
    }),
  ),
  workflow_version: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: limits.integerMax,
      description: 'The version of the workflow to continue with. By default the one of the old run. Only with `from`.',
    }),
  ),
  payload: Type.Optional(
    freeMap('Another payload, for a new run from the beginning. Only for runs of type invoked, and not with `from`.'),
  ),
});
/** All members are optional, and so is the body. */
export const retrySchema = Type.Unsafe<Static<typeof retryMembers> | null>({
  ...retryMembers,
  type: ['object', 'null'],
});

export const signalSchema = strict({ name: bounded(200), payload: Type.Optional(Type.Unknown()) });
export const claimSchema = strict({ lease_seconds: Type.Integer({ minimum: 1, maximum: 86_400 }) });
export const statusSchema = strict({
  status: Type.Enum(['running', 'completed', 'failed']),
  result: Type.Optional(Type.Unknown()),
  error: Type.Optional(strict({ code: bounded(200), message: Type.String({ maxLength: 10_000 }) })),
  claim: Type.Optional(
    bounded(100, 'The `claim` of the response to the claim. 409 `claim_lost` if the run was claimed again since.'),
  ),
});

export const secretResponseSchema = Type.Object(
  { name: Type.String(), created_at: Type.String(), updated_at: Type.String() },
  { $id: 'AppSecret', description: 'A value for `$secrets` in graphs; it cannot be read back.' },
);
export const secretPutSchema = strict({ value: Type.String({ minLength: 1, maxLength: 16_384 }) });
export const secretListSchema = Type.Object({ data: Type.Array(ref(secretResponseSchema)) });
