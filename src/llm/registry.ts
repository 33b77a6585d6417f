import { hash } from 'node:crypto';
import type { Agent } from 'undici';
import { cohereWire, type EmbeddingRequest, openAiEmbeddings } from '../content/embed/openai.ts';
import type { AllowList } from '../content/fetch/allow-list.ts';
import { checkUrl } from '../content/fetch/check-url.ts';
import type { Resolver } from '../content/fetch/resolver.ts';
import { openAiChat } from '../content/models/llm/client.ts';
import type { LlmClient } from '../content/models/llm/completion.ts';
import { sdkChat } from '../content/models/llm/sdk-client.ts';
import { openGuardedAgent, openServiceAgent } from '../content/models/service.ts';
import type { Database } from '../db/database.ts';
import { AddOnMissing, openAddOn } from '../lib/add-ons.ts';
import { defined } from '../lib/defined.ts';
import { AppError, invalidField } from '../lib/errors.ts';
import type { Scope } from '../tenancy/caller.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { findAliasByName, listModelsByName, type ModelRow } from './model-store.ts';
import {
  defaultUrls,
  type ModelKind,
  type OperatorModel,
  type OperatorModels,
  type Provider,
} from './operator-models.ts';

/** A model that can be called. */
export type Model = {
  name: string;
  /** The UUID of an app's own model; null for one of the operator. */
  id: string | null;
  /** Undefined: it writes text. */
  kind: ModelKind | undefined;
  provider: Provider;
  /** As the provider names it. */
  model: string;
  url: string;
  key: string | undefined;
  needsKey: boolean;
  contextTokens: number | undefined;
  outputTokens: number | undefined;
  timeoutMs: number | undefined;
  dimensions: number | undefined;
  batchTexts: number | undefined;
  /** Texts before a question and before a passage. */
  queryPrefix: string | undefined;
  passagePrefix: string | undefined;
  /** What its service is told that a question is, and that a passage is. */
  queryInputType: string | undefined;
  passageInputType: string | undefined;
  /** The weight of its ranking beside that of the text in hybrid searches. */
  fusionWeight: number | undefined;
  modalities: readonly string[];
  prices: Prices | undefined;
};

/** Millionths of a currency unit for a million tokens. */
export type Prices = { input: number; output: number };

/** The models to try, in order. `alias` is the name that chose several. */
export type Chosen = { alias: string | null; models: Model[] };

/** The kind of model that a caller needs, and the member that names it. */
type Wanted = { kind?: ModelKind | 'any' | undefined; field?: string };

const uses = { any: 'at all', chat: 'that writes text', embedding: 'for embeddings', rerank: 'for reranking' };

/** Names the space of a model's vectors: only vectors of the same space are compared. Undefined for other models. */
export function vectorSpace(of: Model): string | undefined {
  const { kind, provider, model, dimensions, passagePrefix, passageInputType } = of;
  if (kind !== 'embedding') return undefined;
  const prefix = passagePrefix && `:prefix-${hash('sha256', passagePrefix).slice(0, 16)}`;
  const inputType = passageInputType && `:input-${passageInputType}`;
  return `${provider}:${model}:${dimensions}${prefix ?? ''}${inputType ?? ''}`;
}

type RegistryDeps = {
  db: Database;
  secrets: Secrets;
  resolve: Resolver;
  operator: OperatorModels;
  /** Hosts beyond the public internet that apps' models may have. */
  allow: AllowList;
  /** Where add-ons may be installed. */
  dataDir: string;
};

/** A server that sends nothing for this long counts as dead. A large model may take minutes for its first token. */
const silenceMsMax = 300_000;
/** How many clients are kept for their connections and what they know of their servers. */
const clientsMax = 500;

/** Finds models by name, an app's own before the operator's, and opens clients for them. */
export type Registry = Choices & Clients & { operator: OperatorModels };

type Choices = {
  /**
   * The models that the name stands for: only those of the kind that have the key that they need. Without a name, the
   * operator's default. Throws 422 on `field`, or 501 if nothing is configured.
   */
  choose(scope: Scope, name: string | undefined, wanted?: Wanted): Promise<Chosen>;
  /** The models that judge the sentences of answers. */
  chooseJudge(): Chosen;
  /**
   * The embedders that the name stands for. Vectors of different models cannot be compared, so an alias stands for
   * its first embedder and for others of the same model. Throws 422 on `field`.
   */
  chooseEmbedder(scope: Scope, name: string, field: string): Promise<Chosen>;
};

/** Each throws 422 if the address of the model is no longer allowed. */
type Clients = {
  /** Requests for vectors of a model. */
  embeddings(model: Model): EmbeddingRequest;
  /** The connections to the server of a model. */
  agent(model: Model): () => Agent;
  client(model: Model): LlmClient;
};

export function createRegistry(deps: RegistryDeps): Registry {
  return { operator: deps.operator, ...createChoices(deps), ...createClients(deps) };
}

function createChoices({ db, secrets, operator }: RegistryDeps): Choices {
  /** The models with these names that exist, in this order. */
  async function findModels(scope: Scope, names: readonly string[]): Promise<Model[]> {
    const rows = await listModelsByName(db, scope, names);
    return names.flatMap((name) => {
      const row = rows.find((each) => each.name === name);
      if (row !== undefined) return [modelOf(secrets, row)];
      const given = operator.models.get(name);
      return given === undefined ? [] : [operatorModelOf(given)];
    });
  }

  async function findNamed(scope: Scope, name: string, field: string): Promise<Chosen> {
    const [own] = await listModelsByName(db, scope, [name]);
    if (own !== undefined) return { alias: null, models: [modelOf(secrets, own)] };
    const alias = (await findAliasByName(db, scope, name))?.models;
    if (alias !== undefined) return { alias: name, models: await findModels(scope, alias) };
    const given = operator.models.get(name);
    if (given !== undefined) return { alias: null, models: [operatorModelOf(given)] };
    const members = operator.aliases.get(name);
    if (members !== undefined) return { alias: name, models: await findModels(scope, members) };
    throw invalidField(field, 'names no model or alias: GET /api/v1/available_models lists them');
  }

  /** Models of the operator alone: an app cannot replace what its requests do not name. */
  function findOperators(name: string): Chosen {
    const given = operator.models.get(name);
    if (given !== undefined) return { alias: null, models: [operatorModelOf(given)] };
    const members = (operator.aliases.get(name) ?? []).flatMap((member) => operator.models.get(member) ?? []);
    return { alias: name, models: members.map(operatorModelOf) };
  }

  return {
    async choose(scope, name, { kind, field = 'model' } = {}) {
      const wanted = name ?? operator.default;
      if (wanted === undefined) throw noModel();
      const chosen = name === undefined ? findOperators(wanted) : await findNamed(scope, wanted, field);
      return usable(chosen, { kind, field });
    },

    chooseJudge() {
      if (operator.judge === undefined) throw new Error('No judge is configured.');
      return usable(findOperators(operator.judge), {});
    },

    async chooseEmbedder(scope, name, field) {
      const { alias, models } = await findNamed(scope, name, field);
      const space = models.map(vectorSpace).find((each) => each !== undefined);
      if (space === undefined) throw invalidField(field, `names no model ${uses.embedding}`);
      const same = models.filter((model) => vectorSpace(model) === space);
      const withKeys = same.filter((model) => !model.needsKey || model.key !== undefined);
      if (withKeys.length === 0) throw invalidField(field, 'names a model that has no key: set it with the model');
      return { alias, models: withKeys };
    },
  };
}

function createClients({ resolve, allow, dataDir }: RegistryDeps): Clients {
  const guarded = openGuardedAgent({ resolve, allow });
  const direct = openServiceAgent(resolve, silenceMsMax);
  const clients = new Map<string, LlmClient>();
  const embedders = new Map<string, EmbeddingRequest>();

  function requireAllowed(model: Model): void {
    if (model.id === null) return;
    const checked = checkUrl(model.url, allow);
    if (!checked.ok) throw invalidField('model', `has a URL that ${checked.problem}`);
  }

  function open({ id, provider, url, key, model }: Model): LlmClient {
    const agent = id === null ? direct : guarded;
    if (provider === 'cohere') throw new Error('Models of Cohere write no text here.');
    if (provider === 'openai') return openAiChat({ baseUrl: url, apiKey: key, model, agent });
    return sdkChat({ provider, baseUrl: url, apiKey: key ?? '', model, agent, load: openPackages(dataDir) });
  }

  return {
    embeddings(model) {
      const { url, key, dimensions = 0, timeoutMs } = model;
      requireAllowed(model);
      return known(embedders, model, () =>
        openAiEmbeddings({
          ...{ baseUrl: url, model: model.model, dimensions, agent: model.id === null ? direct : guarded },
          ...defined({ apiKey: key, timeoutMs, wire: model.provider === 'cohere' ? cohereWire : undefined }),
        }),
      );
    },

    agent(model) {
      requireAllowed(model);
      return model.id === null ? direct : guarded;
    },

    client(model) {
      requireAllowed(model);
      return known(clients, model, () => open(model));
    },
  };
}

function known<T>(opened: Map<string, T>, model: Model, openNew: () => T): T {
  const name = identify(model);
  const before = opened.get(name);
  if (before !== undefined) return before;
  const client = openNew();
  if (opened.size >= clientsMax) opened.delete(opened.keys().next().value ?? '');
  opened.set(name, client);
  return client;
}

/** Loads packages of the add-on. 501 if it is not installed. */
function openPackages(dataDir: string): (name: string) => unknown {
  try {
    return openAddOn('models', dataDir);
  } catch (error) {
    if (error instanceof AddOnMissing) throw new AppError('not_implemented', error.message);
    throw error;
  }
}

/** The models of the kind that have the key that they need. 422 on `field` without one. */
function usable({ alias, models }: Chosen, { kind, field = 'model' }: Wanted): Chosen {
  const ofKind = models.filter((model) => kind === 'any' || model.kind === kind);
  if (ofKind.length === 0 && models.length > 0) throw invalidField(field, `names no model ${uses[kind ?? 'chat']}`);
  const withKeys = ofKind.filter((model) => !model.needsKey || model.key !== undefined);
  if (withKeys.length > 0) return { alias, models: withKeys };
  const problem = alias === null ? 'has no key: set it with the model' : 'is an alias of models that all have no key';
  throw invalidField(field, problem);
}

function noModel(): AppError {
  return new AppError(
    'not_implemented',
    'This server has no language model: its operator has to set QUARRY_LLM_URL and QUARRY_LLM_MODEL.',
  );
}

/** Connections and what is known of a server are never shared among apps. */
function identify({ id, provider, url, key, model, dimensions, timeoutMs }: Model): string {
  return hash('sha256', JSON.stringify([id, provider, url, key, model, dimensions, timeoutMs]), 'base64');
}

/** Providers that have no models without a key. */
export function requiresKey(provider: Provider): boolean {
  return provider !== 'openai';
}

function modelOf(secrets: Secrets, row: ModelRow): Model {
  return {
    ...{ name: row.name, id: row.id, provider: row.provider, model: row.model, url: row.url },
    key: row.key === null ? undefined : readKey(secrets, row.key, row.url),
    needsKey: row.needsKey,
    contextTokens: row.contextTokens ?? undefined,
    outputTokens: row.outputTokens ?? undefined,
    timeoutMs: row.timeoutSeconds === null ? undefined : row.timeoutSeconds * 1_000,
    ...{
      kind: row.kind ?? undefined,
      dimensions: row.dimensions ?? undefined,
      batchTexts: row.batchTexts ?? undefined,
      queryPrefix: row.queryPrefix ?? undefined,
      passagePrefix: row.passagePrefix ?? undefined,
      fusionWeight: row.fusionWeight ?? undefined,
      ...inputTypes(row.provider, row.queryInputType, row.passageInputType),
    },
    modalities: row.modalities,
    prices: row.inputPrice === null ? undefined : { input: row.inputPrice, output: row.outputPrice ?? 0 },
  };
}

function operatorModelOf(given: OperatorModel): Model {
  const { name, provider, model, key } = given;
  return {
    ...{ name, id: null, provider, model, key, needsKey: requiresKey(provider) },
    url: given.url ?? defaultUrls[provider] ?? '',
    contextTokens: given.context_tokens,
    outputTokens: given.output_tokens,
    timeoutMs: given.timeout_seconds === undefined ? undefined : given.timeout_seconds * 1_000,
    ...{ kind: given.kind, dimensions: given.dimensions, batchTexts: given.batch_texts },
    ...{ queryPrefix: given.query_prefix, passagePrefix: given.passage_prefix, fusionWeight: given.fusion_weight },
    ...inputTypes(provider, given.query_input_type, given.passage_input_type),
    modalities: given.modalities ?? ['text'],
    prices: given.prices,
  };
}

/** Cohere requires the types of texts. */
function inputTypes(provider: Provider, query: string | null | undefined, passage: string | null | undefined) {
  const [ofQueries, ofPassages] = provider === 'cohere' ? ['search_query', 'search_document'] : [];
  return { queryInputType: query ?? ofQueries, passageInputType: passage ?? ofPassages };
}

/** Wraps a key with the origin that it may be sent to. */
export function wrapKey(secrets: Secrets, key: string, url: string): Buffer {
  return secrets.wrap(Buffer.from(JSON.stringify({ key, origin: new URL(url).origin })));
}

/** The key, unless it is for another origin. */
function readKey(secrets: Secrets, wrapped: Buffer, url: string): string | undefined {
  const { key, origin } = JSON.parse(secrets.unwrap(wrapped).plain.toString()) as { key: string; origin: string };
  return origin === new URL(url).origin ? key : undefined;
}
