import type { Static, TNull, TOptional, TSchema, TUnion } from 'typebox';
import { strict } from '../http/route/route.ts';
import { limits } from '../lib/limits.ts';
import { Type } from '../lib/type.ts';
import {
  aliasModels,
  modalities,
  modelKinds,
  modelLimits,
  modelName,
  prices,
  providers,
} from '../llm/operator-models.ts';
import { trialProblems } from '../llm/trial.ts';

type Described = TSchema & { description?: string };
/** The schema or null, with its description. */
const orNull = <T extends Described>(schema: T, more = '') =>
  Type.Union(
    [schema, Type.Null()],
    schema.description === undefined ? {} : { description: `${schema.description}${more}` },
  );
/** These members, none of them required. */
export const optional = <P extends Record<string, TSchema>>(members: P) =>
  Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, Type.Optional(schema)])) as {
    [K in keyof P]: TOptional<P[K]>;
  };
/** These members, each of which may be absent or null. `more` describes what null does. */
export const removable = <P extends Record<string, Described>>(members: P, more = '') =>
  Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, Type.Optional(orNull(schema, more))])) as {
    [K in keyof P]: TOptional<TUnion<[P[K], TNull]>>;
  };
const described = <T extends object>(schema: T, description: string): T => ({ ...schema, description });

const names = described(
  modelName,
  'The name by which requests choose it: letters, digits and `. _ : / -`. Unique among models and aliases.',
);
const provider = Type.Enum([...providers], {
  description:
    'The protocol: `openai` for every server with chat completions or embeddings as OpenAI has them, `anthropic`, `google`, or `cohere` for its embeddings and reranking.',
});
const model = Type.String({ minLength: 1, maxLength: 200, description: 'The model, as its provider names it.' });
const url = Type.String({
  minLength: 1,
  maxLength: limits.urlCharactersMax,
  description: 'The base URL, up to and including the version. Required for `openai`.',
});
const key = Type.String({
  minLength: 1,
  maxLength: 4_096,
  description: 'The key of the provider. It is never returned, and is only sent to the host of `url`.',
});
const kind = Type.Enum([...modelKinds], {
  description:
    'What it is for, if not to write text: `embedding` for the vectors of sources, `rerank` for the order of results. Both need the provider `openai` or `cohere`.',
});
/** What a model can do, and how it is called. */
const traits = {
  context_tokens: described(modelLimits.context_tokens, 'How many tokens the messages and the text may have together.'),
  output_tokens: described(modelLimits.output_tokens, 'How many tokens the model can write in one response.'),
  timeout_seconds: described(
    modelLimits.timeout_seconds,
    'How long the model may write nothing before it is given up.',
  ),
  dimensions: described(
    modelLimits.dimensions,
    'How many numbers each vector has. Required for the kind `embedding`: vectors of another length are refused.',
  ),
  batch_texts: described(
    modelLimits.batch_texts,
    'Of the kind `embedding`: how many texts one request may have. Default: 64.',
  ),
  query_prefix: described(
    modelLimits.query_prefix,
    'Of the kind `embedding`: text that the model expects before a question, such as `query: `. It is sent exactly as it is, with its spaces.',
  ),
  passage_prefix: described(
    modelLimits.passage_prefix,
    'Of the kind `embedding`: text that the model expects before a passage, such as `passage: `. Another prefix makes other vectors: sources that name the model embed their documents again.',
  ),
  query_input_type: described(
    modelLimits.query_input_type,
    'Of the kind `embedding`: what the service is told in `input_type` that a question is, such as `query` (Voyage) or `search_query` (Cohere, for which it is the default).',
  ),
  passage_input_type: described(
    modelLimits.passage_input_type,
    'Of the kind `embedding`: what the service is told in `input_type` that a passage is, such as `document` (Voyage) or `search_document` (Cohere, for which it is the default). Another type makes other vectors, like another prefix.',
  ),
  fusion_weight: described(
    modelLimits.fusion_weight,
    'Of the kind `embedding`: the weight of its ranking in hybrid searches, beside the ranking by text, whose weight is 1. Default: 1.',
  ),
};
const modes = Type.Array(Type.Enum([...modalities]), {
  minItems: 1,
  uniqueItems: true,
  description: 'What the model reads. Default: only text.',
});
const priced = described(
  prices,
  'What a million tokens cost, in millionths of a currency unit: 3,000,000 is 3 per million tokens.',
);

export const modelSchema = Type.Object(
  {
    id: Type.String({ description: 'mdl_…' }),
    app: Type.String(),
    sandbox: orNull(Type.String()),
    name: Type.String({ description: 'The name by which requests choose it.' }),
    kind: Type.Optional(kind),
    provider,
    model: Type.String({ description: 'The model, as its provider names it.' }),
    url: Type.String({ description: 'The base URL of its provider.' }),
    has_key: Type.Boolean({ description: 'Whether a key is stored for this host.' }),
    ...optional(traits),
    modalities: Type.Array(Type.Enum([...modalities]), { description: 'What the model reads.' }),
    prices: Type.Optional(priced),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'Model', description: 'A language model that an app brings.' },
);

export const modelCreateSchema = strict({
  name: names,
  kind: Type.Optional(kind),
  provider,
  model,
  url: Type.Optional(url),
  key: Type.Optional(key),
  ...optional(traits),
  modalities: Type.Optional(modes),
  prices: Type.Optional(priced),
});

export const modelUpdateSchema = strict({
  name: Type.Optional(names),
  model: Type.Optional(model),
  url: Type.Optional(
    described(url, 'The base URL. A URL of another host removes the key, unless one is sent with it.'),
  ),
  key: Type.Optional(described(orNull(key), 'The key of the provider; null removes it.')),
  ...removable(traits),
  dimensions: Type.Optional(traits.dimensions),
  modalities: Type.Optional(modes),
  prices: Type.Optional(orNull(priced)),
});
export type ModelCreate = Static<typeof modelCreateSchema>;
export type ModelUpdate = Static<typeof modelUpdateSchema>;

export const modelTestSchema = Type.Object(
  {
    ok: Type.Boolean({ description: 'Whether the model did what it is for.' }),
    problem: Type.Optional(
      Type.Enum([...trialProblems], {
        description:
          '`no_key`: none is stored for the URL. `key_refused`: 401 or 403. `not_found`: 404, so the URL or the name of the model is wrong. `unreachable`: no connection. `timeout`: nothing within 20 seconds. `failed`: anything else, such as vectors of another length.',
      }),
    ),
    message: Type.Optional(Type.String({ description: 'What happened, in words.' })),
    latency_ms: Type.Integer({ description: 'How long the call took.' }),
    first_token_ms: Type.Optional(Type.Integer({ description: 'When the first text arrived.' })),
  },
  { $id: 'ModelTest', description: 'What happened when a model was tried.' },
);

const members = described(aliasModels, 'Names of models, in the order in which they are tried. Aliases do not nest.');

export const aliasSchema = Type.Object(
  {
    id: Type.String({ description: 'mal_…' }),
    app: Type.String(),
    sandbox: orNull(Type.String()),
    name: Type.String({ description: 'The name by which requests choose it.' }),
    models: members,
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'ModelAlias', description: 'A name for an ordered list of models.' },
);
export const aliasCreateSchema = strict({ name: names, models: members });
export const aliasUpdateSchema = strict({ name: Type.Optional(names), models: Type.Optional(members) });
export type AliasCreate = Static<typeof aliasCreateSchema>;
export type AliasUpdate = Static<typeof aliasUpdateSchema>;

export const availableModelSchema = Type.Object(
  {
    name: Type.String({ description: 'The name by which requests choose it.' }),
    kind: Type.Enum(['model', 'alias'], { description: 'Whether it is one model or an ordered list.' }),
    from: Type.Enum(['app', 'operator'], {
      description: 'Whose it is. A name of the app hides the same one of the operator.',
    }),
    is_default: Type.Boolean({ description: 'Whether it is used if a request names no model.' }),
    usable: Type.Boolean({
      description: 'Whether it has the key that it needs. Of an alias, whether one of its models has.',
    }),
    purpose: Type.Optional(described(kind, 'What it is for, if not to write text.')),
    provider: Type.Optional(provider),
    dimensions: Type.Optional(traits.dimensions),
    model: Type.Optional(Type.String({ description: 'The model, as its provider names it.' })),
    models: Type.Optional(Type.Array(Type.String(), { description: 'The names of the models of an alias.' })),
    context_tokens: Type.Optional(Type.Integer({ description: 'How many tokens the messages and the text may have.' })),
    modalities: Type.Optional(Type.Array(Type.String(), { description: 'What the model reads.' })),
    prices: Type.Optional(priced),
  },
  { $id: 'AvailableModel', description: 'A model or an alias that requests of the app may name.' },
);

const callStatuses = ['running', 'succeeded', 'failed', 'abandoned'] as const;
const status = Type.Enum([...callStatuses], {
  description: 'How it ended. `abandoned`: its process was killed, and what it reserved counts.',
});
const optionalText = (description: string) => Type.Optional(Type.String({ description }));
const optionalCount = (description: string) => Type.Optional(Type.Integer({ description }));

export const modelCallSchema = Type.Object(
  {
    id: Type.String({ description: 'mcl_…' }),
    model: Type.String({ description: 'The name of the model; `default` is the one that the operator set.' }),
    alias: optionalText('The alias that chose the model.'),
    operation: Type.Optional(
      Type.Enum(['embeddings', 'rerank'], { description: 'What it was for, if not to write text.' }),
    ),
    provider: Type.String({ description: 'The provider of the model.' }),
    provider_model: Type.String({ description: 'The model, as its provider names it.' }),
    status,
    error_code: optionalText('Why it failed.'),
    finish_reason: optionalText('Why the model stopped, in its own words.'),
    prompt_tokens: optionalCount('Tokens of the messages.'),
    completion_tokens: optionalCount('Tokens that the model wrote.'),
    estimated: Type.Boolean({ description: 'Whether the tokens are estimated: the provider reported none.' }),
    reserved_tokens: Type.Integer({ description: 'Tokens that were reserved before the call.' }),
    prices: Type.Optional(described(priced, 'The prices at which the call was made.')),
    cost: optionalCount('What it cost, in millionths of a currency unit. Absent for a model without prices.'),
    latency_ms: optionalCount('How long it took.'),
    first_token_ms: optionalCount('When the first text arrived.'),
    user: optionalText('The user (`usr_…`) for whom it was made.'),
    agent: optionalText('The agent (`agt_…`) for which it was made.'),
    automation: optionalText('The automation (`aut_…`).'),
    run: optionalText('The run (`atr_…`).'),
    node: optionalText('The id of the node.'),
    extraction: optionalText('The extraction (`ext_…`).'),
    prompt: optionalText('The messages, if the server keeps contents.'),
    output: optionalText('The text, if the server keeps contents.'),
    created_at: Type.String(),
    ended_at: optionalText('When it ended, in ISO 8601.'),
  },
  { $id: 'ModelCall', description: 'One call of a language model.' },
);

const idText = (description: string) => Type.Optional(Type.String({ maxLength: 64, description }));
export const callFilter = Type.Object({
  model: Type.Optional(Type.String({ maxLength: 100, description: 'The name of the model.' })),
  status: Type.Optional(status),
  user: idText('Only calls for this user.'),
  agent: idText('Only calls for this agent.'),
  automation: idText('Only calls of this automation.'),
  run: idText('Only calls of this run.'),
  extraction: idText('Only calls of this extraction.'),
  since: Type.Optional(Type.String({ maxLength: 40, description: 'At or after this time (ISO 8601).' })),
  until: Type.Optional(Type.String({ maxLength: 40, description: 'Before this time (ISO 8601).' })),
});
export type CallFilter = Static<typeof callFilter>;
