import type { TSchema } from 'typebox';
import { ref, strict } from '../http/route/route.ts';
import { streamPositionSchema } from '../http/streams/schema.ts';
import { Type } from '../lib/type.ts';

const text = (description: string) => Type.String({ description });
const optional = (description: string) => Type.Optional(text(description));
const error = Type.Object(
  { code: text('A stable code for programs.'), message: text('A text for people.') },
  { description: 'Why it failed.' },
);
const anyValue = (description: string) => Type.Optional(Type.Unknown({ description }));

const file = Type.Object({
  file: text('The file (`fil_…`).'),
  filename: text('The name of the file.'),
  content_type: text('The media type.'),
  size: Type.Integer({ description: 'The size in bytes.' }),
  org: optional('The organisation (`org_…`) that owns the file.'),
  team: optional('The team (`tea_…`) that owns the file.'),
  user: optional('The user (`usr_…`) who owns the file.'),
  agent: optional('The agent (`agt_…`) that owns the file.'),
});
const extraction = Type.Object({
  extraction: text('The extraction (`ext_…`).'),
  kind: Type.Enum(['document', 'link', 'site'], { description: 'What was read.' }),
  state: Type.Enum(['done', 'failed'], { description: 'How it ended.' }),
  file: optional('The file (`fil_…`) that was read.'),
  url: optional('The URL that was read.'),
  failure_reason: optional('The kind of failure.'),
});
const ingestion = Type.Object({
  ingestion: text('The ingestion (`cig_…`).'),
  source: text('The knowledge source (`cso_…`).'),
  status: Type.Enum(['succeeded', 'failed'], { description: 'How it ended.' }),
  error: Type.Optional(error),
});
const source = Type.Object({
  source: text('The knowledge source (`cso_…`).'),
  type: text('The type of the source.'),
  state: text('The state of the source.'),
});
const run = Type.Object({
  run: text('The run (`atr_…`).'),
  automation: text('The automation (`aut_…`).'),
  status: Type.Enum(['completed', 'failed'], { description: 'How it ended.' }),
  result: anyValue('What the run returned.'),
  error: Type.Optional(error),
});
const approval = {
  approval: text('The approval (`apr_…`).'),
  run: text('The run that waits (`atr_…`).'),
  automation: text('The automation (`aut_…`).'),
  node_id: text('The node that asks.'),
};
const requested = Type.Object({
  ...approval,
  question: text('What is asked.'),
  expires_at: Type.Optional(text('When the approval expires.')),
});
const answered = Type.Object({
  ...approval,
  answered_by: text('The user, the developer, `secret key`, or the holder of a link.'),
});
const budget = Type.Object({
  budget: text('The budget (`mbg_…`).'),
  level: Type.Enum(['soft', 'hard'], {
    description: 'Which limit was reached. Beyond the hard one, calls are refused.',
  }),
  subject: text('Whose budget it is, such as `user`.'),
  subject_id: Type.Union([Type.String(), Type.Null()], {
    description: 'The id of the user, agent …; null for the app.',
  }),
  period: Type.Enum(['day', 'month', 'total'], { description: 'When the count starts at 0 again.' }),
  resets_at: Type.Union([Type.String(), Type.Null()], { description: 'The end of the period, in ISO 8601.' }),
  tokens: Type.Integer({ description: 'Tokens used, with those reserved by calls in progress.' }),
  cost: Type.Integer({ description: 'Money used, in millionths of a currency unit.' }),
});
const readyRun = Type.Object({
  run: text('The run (`atr_…`).'),
  automation: text('Its automation.'),
  workflow: text('The name of its program.'),
  lookup_key: Type.Optional(text('The lookup key of the automation.')),
  claim: Type.Optional(text('The credential for the run, `rct_…`. Only in the message itself.')),
  lease_until: Type.Optional(text('When the claim expires. Only in the message itself.')),
  url: Type.Optional(text('Where the claim is used, `…/api/v1/claimed_run`. Only in the message itself.')),
});
const testPayload = Type.Object({ webhook: text('The webhook (`whk_…`).') });

/** The events that Quarry emits by itself, and the payload of each. Programs emit others under names of their own. */
const ownEvents: Record<string, { summary: string; payload: TSchema }> = {
  'file.created': { summary: 'A file was stored', payload: file },
  'file.updated': { summary: 'A name, the sharing or the metadata of a file changed', payload: file },
  'extraction.completed': { summary: 'An extraction ended with its text', payload: extraction },
  'extraction.failed': { summary: 'An extraction failed', payload: extraction },
  'ingestion.succeeded': { summary: 'Content became searchable', payload: ingestion },
  'ingestion.failed': { summary: 'An ingestion failed', payload: ingestion },
  'knowledge_source.created': { summary: 'A source was created', payload: source },
  'knowledge_source.updated': { summary: 'A source changed', payload: source },
  'knowledge_source.deleted': { summary: 'A source was deleted', payload: source },
  'automation_run.completed': { summary: 'A run ended with its result', payload: run },
  'automation_run.failed': { summary: 'A run failed', payload: run },
  'approval.requested': { summary: 'A run asks people and waits for an answer', payload: requested },
  'approval.answered': { summary: 'An approval was answered', payload: answered },
  'model_budget.reached': { summary: 'A budget for language models has reached a limit', payload: budget },
  'automation_run.ready': {
    summary: 'A run of a workflow in code has work: sent to the webhook of its function alone',
    payload: readyRun,
  },
  'webhook.test': { summary: 'Sent by the test of a webhook, to that webhook alone', payload: testPayload },
};

export const ownEventNames: readonly string[] = Object.keys(ownEvents);

/** The schema of the payload of an event that Quarry emits; undefined for other names. */
export function payloadOf(event: string): TSchema | undefined {
  return Object.hasOwn(ownEvents, event) ? ownEvents[event]?.payload : undefined;
}

/** The message that a webhook receives for each of them. */
export const webhookMessages = Object.entries(ownEvents).map(([event, { summary, payload }]) => ({
  event,
  summary,
  body: Type.Object({
    id: text('The event (`evt_…`); the same at every attempt.'),
    type: Type.Literal(event, { description: 'The name of the event.' }),
    timestamp: text('When it happened, in ISO 8601.'),
    sequence: Type.Integer({ minimum: 1, description: 'Its number in production or in the sandbox.' }),
    data: payload,
  }),
}));

export const eventSchema = strict({
  name: Type.String({ minLength: 1, maxLength: 200 }),
  payload: Type.Optional(Type.Unknown()),
});
export const emittedEventSchema = Type.Object({ id: text('evt_…'), name: Type.String() });

const loggedEventSchema = Type.Object(
  {
    id: text('The event (`evt_…`).'),
    type: text('The name of the event.'),
    timestamp: text('When it happened, in ISO 8601.'),
    sequence: Type.Integer({ minimum: 1, description: 'Its number in production or in the sandbox.' }),
    data: Type.Unknown({ description: 'The payload, as in the message to a webhook.' }),
  },
  { $id: 'LoggedEvent', description: 'The data of the event `event`.' },
);
export const streamedEventSchema = Type.Union([ref(loggedEventSchema), ref(streamPositionSchema)], {
  $id: 'StreamedEvent',
  description: 'The data of an event of the stream.',
});
