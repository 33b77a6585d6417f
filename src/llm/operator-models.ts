import { readFileSync } from 'node:fs';
import type { Static, TSchema } from 'typebox';
import { ConfigError } from '../config/values.ts';
import { lazyPackage } from '../lib/lazy-package.ts';
import { mapOf } from '../lib/map-schema.ts';
import { pattern } from '../lib/patterns.ts';
import { Type } from '../lib/type.ts';

/* The operator's models: the one of QUARRY_LLM_URL, and those of the file that QUARRY_MODELS_FILE names. */

export const providers = ['openai', 'anthropic', 'google', 'cohere'] as const;
export type Provider = (typeof providers)[number];
/** What a model is for, if not to write text. */
export const modelKinds = ['embedding', 'rerank'] as const;
export type ModelKind = (typeof modelKinds)[number];
export const modalities = ['text', 'image', 'file'] as const;

const values = lazyPackage<typeof import('typebox/value')>('typebox/value');

/** The URLs that are used if a model names none. */
export const defaultUrls: Record<Provider, string | undefined> = {
  openai: undefined,
  anthropic: 'https://api.anthropic.com/v1',
  google: 'https://generativelanguage.googleapis.com/v1beta',
  cohere: 'https://api.cohere.com/v2',
};

/** A name of a model or alias. */
export const modelName = Type.String({
  minLength: 1,
  maxLength: 100,
  ...pattern(
    '^[A-Za-z0-9][A-Za-z0-9._:/-]*$',
    'must begin with a letter or digit, and have only letters, digits and . _ : / -',
  ),
});

/** The highest price: a thousand currency units for a million tokens. */
const priceMax = 1_000_000_000;
const price = (description: string) => Type.Integer({ minimum: 0, maximum: priceMax, description });
export const prices = Type.Object(
  { input: price('What a million tokens of messages cost.'), output: price('What a million written tokens cost.') },
  { additionalProperties: false },
);
const inputType = Type.String({
  ...{ minLength: 1, maxLength: 50 },
  ...pattern('^[A-Za-z0-9._-]+$', 'must have only letters, digits and . _ -'),
});
export const modelLimits = {
  context_tokens: Type.Integer({ minimum: 256, maximum: 100_000_000 }),
  output_tokens: Type.Integer({ minimum: 1, maximum: 1_000_000 }),
  timeout_seconds: Type.Integer({ minimum: 1, maximum: 3_600 }),
  dimensions: Type.Integer({ minimum: 1, maximum: 8_192 }),
  batch_texts: Type.Integer({ minimum: 1, maximum: 2_048 }),
  query_prefix: Type.String({ minLength: 1, maxLength: 500 }),
  passage_prefix: Type.String({ minLength: 1, maxLength: 500 }),
  query_input_type: inputType,
  passage_input_type: inputType,
  fusion_weight: Type.Number({ minimum: 0.01, maximum: 10 }),
};

/** The texts of one request to a model for embeddings that sets no other number. */
export const batchTextsDefault = 64;

const embeddingMembers = [
  'dimensions',
  'batch_texts',
  'query_prefix',
  'passage_prefix',
  'query_input_type',
  'passage_input_type',
  'fusion_weight',
] as const;

/** What is wrong with a model of this kind, and the member at which. */
export function findKindProblem(
  model: { kind?: string | null | undefined; provider: Provider } & {
    [member in (typeof embeddingMembers)[number]]?: string | number | null | undefined;
  },
): { field: string; problem: string } | undefined {
  const { kind, provider, dimensions } = model;
  if (kind && provider !== 'openai' && provider !== 'cohere')
    return { field: 'provider', problem: 'must be openai or cohere for a model that does not write text' };
  if (!kind && provider === 'cohere')
    return { field: 'provider', problem: 'cohere is for models with the kind embedding or rerank' };
  if (kind === 'embedding')
    return dimensions ? undefined : { field: 'dimensions', problem: 'is required for a model for embeddings' };
  const problem = 'is only for models with the kind embedding';
  const field = embeddingMembers.find((each) => model[each]);
  return field && { field, problem };
}

const aliasModelsMax = 10;
export const aliasModels = Type.Array(modelName, { minItems: 1, maxItems: aliasModelsMax, uniqueItems: true });

const optional = <T extends TSchema>(schema: T) => Type.Optional(schema);
const operatorModel = Type.Object(
  {
    name: modelName,
    kind: optional(Type.Enum([...modelKinds])),
    provider: Type.Enum([...providers]),
    model: Type.String({ minLength: 1, maxLength: 200 }),
    url: optional(
      Type.String({ minLength: 1, maxLength: 2_000, ...pattern('^https?://', 'must be an http or https URL') }),
    ),
    key: optional(Type.String({ minLength: 1, maxLength: 4_096 })),
    context_tokens: optional(modelLimits.context_tokens),
    output_tokens: optional(modelLimits.output_tokens),
    timeout_seconds: optional(modelLimits.timeout_seconds),
    dimensions: optional(modelLimits.dimensions),
    batch_texts: optional(modelLimits.batch_texts),
    query_prefix: optional(modelLimits.query_prefix),
    passage_prefix: optional(modelLimits.passage_prefix),
    query_input_type: optional(modelLimits.query_input_type),
    passage_input_type: optional(modelLimits.passage_input_type),
    fusion_weight: optional(modelLimits.fusion_weight),
    modalities: optional(Type.Array(Type.Enum([...modalities]), { minItems: 1, uniqueItems: true })),
    prices: optional(prices),
  },
  { additionalProperties: false },
);
const fileSchema = Type.Object(
  {
    models: Type.Array(operatorModel, { maxItems: 100 }),
    aliases: optional(mapOf(aliasModels)),
    default: optional(modelName),
  },
  { additionalProperties: false },
);
export type OperatorModel = Static<typeof operatorModel>;

export type OperatorModels = {
  models: ReadonlyMap<string, OperatorModel>;
  aliases: ReadonlyMap<string, readonly string[]>;
  /** The name of the model or alias that is used if a request names none. */
  default: string | undefined;
  /** The name of the model or alias that judges the sentences of answers. */
  judge: string | undefined;
};

/** The name under which the model of QUARRY_LLM_URL is listed. */
const defaultModelName = 'default';

export type OperatorModelSettings = {
  llmUrl: string | undefined;
  llmModel: string | undefined;
  llmKey: string | undefined;
  modelsFile: string | undefined;
  answersJudge: string | undefined;
};

/** Reads the operator's models. Throws ConfigError if the file cannot be used, or a setting names none of them. */
export function readOperatorModels(settings: OperatorModelSettings): OperatorModels {
  const { llmUrl, llmModel, llmKey, modelsFile, answersJudge: judge } = settings;
  const file = modelsFile === undefined ? { models: [] } : readModelsFile(modelsFile);
  const models = new Map<string, OperatorModel>(file.models.map((each) => [each.name, each]));
  const aliases = new Map(Object.entries(file.aliases ?? {}));
  if (llmUrl !== undefined && llmModel !== undefined)
    models.set(defaultModelName, {
      ...{ name: defaultModelName, provider: 'openai', model: llmModel, url: llmUrl },
      ...(llmKey === undefined ? {} : { key: llmKey }),
    });
  const chosen = file.default ?? (models.has(defaultModelName) ? defaultModelName : undefined);
  if (judge !== undefined && !models.has(judge) && !aliases.has(judge))
    throw new ConfigError([`QUARRY_ANSWERS_JUDGE names ${judge}, which is not a model or alias of the operator`]);
  return { models, aliases, default: chosen, judge };
}

function readModelsFile(path: string): Static<typeof fileSchema> {
  const problem = (text: string) => new ConfigError([`QUARRY_MODELS_FILE ${text}`]);
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw problem(`must name a file of JSON: ${(error as Error).message}`);
  }
  const { Value } = values();
  if (!Value.Check(fileSchema, value)) {
    const [first] = Value.Errors(fileSchema, value);
    throw problem(`has an invalid value at ${first?.instancePath || '/'}: ${first?.message}`);
  }
  const names = value.models.map(({ name }) => name);
  const aliases = Object.entries(value.aliases ?? {});
  const all = [...names, ...aliases.map(([name]) => name)];
  const twice = all.find((name, index) => all.indexOf(name) !== index);
  if (twice !== undefined) throw problem(`names ${twice} twice`);
  if (all.includes(defaultModelName)) throw problem(`must not name a model "${defaultModelName}"`);
  const withoutUrl = value.models.find((each) => (each.url ?? defaultUrls[each.provider]) === undefined);
  if (withoutUrl !== undefined) throw problem(`has no url for ${withoutUrl.name}`);
  for (const each of value.models) {
    const wrong = findKindProblem(each);
    if (wrong !== undefined) throw problem(`has a model ${each.name} whose ${wrong.field} ${wrong.problem}`);
  }
  for (const [alias, members] of aliases)
    for (const member of members)
      if (!names.includes(member) && member !== defaultModelName)
        throw problem(`lists ${member} in the alias ${alias}, which is none of its models`);
  if (value.default !== undefined && !all.includes(value.default)) throw problem('has a default that it does not name');
  if (value.models.find(({ name }) => name === value.default)?.kind !== undefined)
    throw problem('has a default that does not write text');
  return value;
}
