import type { Static } from 'typebox';
import { ref, strict } from '../../http/route/route.ts';
import { limits } from '../../lib/limits.ts';
import { mapOf } from '../../lib/map-schema.ts';
import { pattern } from '../../lib/patterns.ts';
import { Type } from '../../lib/type.ts';
import { retrySchema } from '../definitions/graph.ts';
import { entrySchema, runSchema } from '../schema.ts';
import { stepKinds } from './state.ts';

export const programLimits = {
  automationsMax: 100,
  leaseSecondsMax: 3_600,
  waitSecondsMax: 30,
  entriesMax: 200,
  stepIdCharactersMax: 500,
  sleepSecondsMax: 366 * 24 * 3_600,
  /** Runs that functions of one webhook hold at the same time. */
  wokenMax: 50,
  /** One page of a journal that a worker reads. */
  pageEntriesMax: 1_000,
  pageBytesMax: 4 * 1024 * 1024,
} as const;

const bounded = (maxLength: number, description: string) => Type.String({ minLength: 1, maxLength, description });
const claim = bounded(100, 'The claim, `clm_…`. Another claim on the run makes it invalid.');
const waitSeconds = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 0, maximum: programLimits.waitSecondsMax, description }));

export const workClaimSchema = strict({
  automations: Type.Array(Type.String({ minLength: 1, maxLength: 300 }), {
    minItems: 1,
    maxItems: programLimits.automationsMax,
    description: 'Ids or lookup keys of automations whose workflow is a program.',
  }),
  code_version: bounded(200, 'The version of your code. A run that a version did not fit is not offered to it again.'),
  lease_seconds: Type.Integer({
    minimum: 1,
    maximum: programLimits.leaseSecondsMax,
    description: 'The run may be claimed again this long after the last request with the claim.',
  }),
  wait_seconds: waitSeconds('How long to wait for a run. By default, the response is sent immediately.'),
});

const journalOf = { type: 'array', items: ref(entrySchema) } as const;
const journal = (description: string) => Type.Unsafe<Static<typeof entrySchema>[]>({ ...journalOf, description });
const afterCursor = Type.Optional(
  Type.String({ description: 'Continues the journal; absent if this is its end.', maxLength: 500 }),
);

export const claimedWorkSchema = Type.Object(
  {
    run: ref(runSchema),
    claim,
    lease_until: Type.String({ description: 'When the claim expires without a renewal.' }),
    sequence: Type.Integer({ description: 'The last entry of the journal: `after_sequence` of the first batch.' }),
    journal: journal('The beginning of the journal, with the secrets that redaction hides from other readers.'),
    after_cursor: afterCursor,
  },
  { $id: 'ClaimedWork', description: 'A run that the worker now executes, and what has happened in it so far.' },
);

export const readWorkSchema = strict({
  claim,
  after_cursor: Type.String({ maxLength: 500, description: 'The `after_cursor` of the page before.' }),
});
export const readClaimedSchema = strict({
  code_version: Type.Optional(bounded(200, 'The version of your code, which its entries then name.')),
  after_cursor: Type.Optional(
    Type.String({ maxLength: 500, description: 'The `after_cursor` of the page before. Without it: the beginning.' }),
  ),
});
export const claimedJournalSchema = Type.Object(
  {
    run: Type.String({ description: 'The run.' }),
    sequence: Type.Integer({ description: 'The last entry of the journal: `after_sequence` of the first batch.' }),
    lease_until: Type.String({ description: 'When the claim expires without a request with entries.' }),
    journal: journal('The next entries, with the secrets that redaction hides from other readers.'),
    after_cursor: afterCursor,
  },
  { $id: 'ClaimedJournal', description: 'A part of the journal of the run that a function was woken for.' },
);
export const workPageSchema = Type.Object(
  { journal: journal('The next entries.'), after_cursor: afterCursor },
  { $id: 'WorkJournalPage', description: 'A part of the journal of a claimed run.' },
);

const people = (of: string, description: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
      maxItems: limits.approvalPeopleMax,
      description: `For kind \`approve\`: ${of}. ${description}`,
    }),
  );

/** The members of a step that asks people: those of the node kind `approve`. */
const approveMembers = {
  question: Type.Optional(bounded(limits.approvalQuestionCharactersMax, 'For kind `approve`: what people are asked.')),
  form: Type.Optional(
    Type.Unsafe<Record<string, unknown>>({
      type: 'object',
      additionalProperties: true,
      description: 'For kind `approve`: the JSON Schema of the answer. Default: `ok`, and an optional `comment`.',
    }),
  ),
  users: people('ids of users', 'Each of them may answer.'),
  teams: people('ids of teams', 'Each of their members may answer.'),
  roles: Type.Optional(
    Type.Array(Type.Enum(['admin', 'member', 'viewer']), {
      maxItems: 3,
      description: 'For kind `approve`: those who have one of these roles in `org` may answer.',
    }),
  ),
  org: Type.Optional(bounded(100, 'For kind `approve`: the organization of `roles`. Default: that of the automation.')),
  exclude_invoker: Type.Optional(
    Type.Boolean({ description: 'For kind `approve`: the user who invoked the run may not answer.' }),
  ),
};

const entryInput = strict({
  type: Type.Enum(['node_started', 'node_completed', 'node_failed', 'run_completed', 'run_failed'], {
    description: 'The server itself writes all other entries.',
  }),
  node_id: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: programLimits.stepIdCharactersMax,
      ...pattern('^[^\\u0000-\\u001f\\u007f]+$', 'must not contain control characters'),
      description: 'The step: its scope, name and occurrence. Required for all `node_` entries.',
    }),
  ),
  kind: Type.Optional(
    Type.Enum(stepKinds, {
      description:
        'Of `node_started`: `step` is executed by the program; `value` is a recorded value; the server ends `sleep`, `signal`, `child` and `approve`.',
    }),
  ),
  retry: Type.Optional({ ...retrySchema, description: 'For kind `step`. The server schedules the next attempt.' }),
  seconds: Type.Optional(
    Type.Number({ minimum: 0, maximum: programLimits.sleepSecondsMax, description: 'For kind `sleep`.' }),
  ),
  until: Type.Optional(
    Type.String({ minLength: 1, maxLength: 40, description: 'For kind `sleep`: an ISO 8601 time.' }),
  ),
  name: Type.Optional(bounded(200, 'For kind `signal`: the name of the signal.')),
  timeout_seconds: Type.Optional(
    Type.Number({
      minimum: 0,
      maximum: programLimits.sleepSecondsMax,
      description: 'For kinds `signal` and `approve`: the step then fails with `timeout`.',
    }),
  ),
  ...approveMembers,
  automation: Type.Optional(bounded(300, 'For kind `child`: the id or lookup key of an invoked automation.')),
  payload: Type.Optional(
    Type.Unknown({ description: 'The output of a step, the result of the run, or the payload for a child run.' }),
  ),
  error: Type.Optional(
    strict({
      code: Type.String({ minLength: 1, maxLength: 200 }),
      message: Type.String({ maxLength: 10_000 }),
    }),
  ),
  retryable: Type.Optional(Type.Boolean({ description: 'Of `node_failed`: false prevents further attempts.' })),
});
export type WorkerEntry = Static<typeof entryInput>;

const batchMembers = {
  after_sequence: Type.Integer({
    minimum: 0,
    maximum: 2_147_483_647,
    description: 'The `sequence` of the last response.',
  }),
  entries: Type.Array(entryInput, {
    maxItems: programLimits.entriesMax,
    description: 'One request may end a step and start the next. An empty list only renews the claim.',
  }),
  release: Type.Optional(
    strict(
      {
        workflow_changed: Type.Optional(
          strict(
            {
              expected: Type.Unknown({ description: 'What the journal has.' }),
              found: Type.Unknown({ description: 'What the code asked for instead.' }),
            },
            { description: 'The code does not fit the journal: the run waits for another version of the code.' },
          ),
        ),
      },
      { description: 'Ends the claim after these entries. The run is ready again when something has happened in it.' },
    ),
  ),
  wait_seconds: waitSeconds('Without entries and `release`: waits this long for an entry of the server.'),
};
export const appendWorkSchema = strict({ claim, ...batchMembers });
/** The claim is the credential of the request. */
export const appendClaimedSchema = strict(batchMembers);
export type WorkBatch = Static<typeof appendWorkSchema>;

export const appendedWorkSchema = Type.Object(
  {
    sequence: Type.Integer({ description: 'The last entry of the journal: `after_sequence` of the next batch.' }),
    cancel_requested: Type.Boolean({ description: 'The run was cancelled or ended otherwise: nothing was written.' }),
    lease_until: Type.Optional(Type.String({ description: 'When the claim expires; absent if it was released.' })),
    command_ids: mapOf(Type.String(), {
      description: 'The command of each step that the batch started: the idempotency key of all its attempts.',
    }),
    entries: journal('What the server has added since `after_sequence`.'),
  },
  { $id: 'AppendedWork', description: 'The state of a run after a batch of entries.' },
);
