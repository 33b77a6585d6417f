import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import { requireSafeUrl } from '../content/fetch/safe-url.ts';
import type { Database, Db } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Clock } from '../lib/clock.ts';
import { found, invalidField } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { ModelRow } from '../llm/model-store.ts';
import { defaultUrls, findKindProblem, type OperatorModels } from '../llm/operator-models.ts';
import { requiresKey, wrapKey } from '../llm/registry.ts';
import type { Trial } from '../llm/trial.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { requireHeaderToken } from '../tenancy/header-token.ts';
import { pathId } from '../tenancy/references.ts';
import { requireRoom } from '../tenancy/room.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { createAliases } from './aliases.ts';
import { listAvailable } from './available.ts';
import { createCallRecords } from './calls.ts';
import { requireFreeName } from './names.ts';
import type { ModelCreate, ModelUpdate } from './schema.ts';
import * as store from './store.ts';

export type ModelDeps = {
  db: Database;
  clock: Clock;
  secrets: Secrets;
  fetcher: Pick<Fetcher, 'check'>;
  operator: OperatorModels;
  /** Called when names of a space may stand for other models. */
  onChanged(tx: Db, scope: Scope): Promise<void>;
  /** Tries a model with one small call. */
  tryModel(origin: Scope, name: string): Promise<Trial>;
};

/** Models of production and of each sandbox. */
const room = { things: 'models', max: 100 };

export type ModelService = ReturnType<typeof createModelService>;

/** The models that an app brings, its aliases, and the records of calls. */
export function createModelService(deps: ModelDeps) {
  const { db, clock, secrets, fetcher, operator, onChanged, tryModel } = deps;

  return {
    ...createAliases(deps),
    ...createCallRecords(db),

    async create(caller: Caller, input: ModelCreate): Promise<ModelRow> {
      const url = input.url ?? defaultUrls[input.provider];
      if (url === undefined) throw invalidField('url', `is required for the provider ${input.provider}`);
      requireSafeUrl(fetcher, 'url', url);
      requireHeaderToken('key', input.key);
      requireKind(input);
      return db.begin(async (tx) => {
        await requireRoom(tx, caller, room, () => store.countModels(tx, caller));
        await requireFreeName(tx, caller, input.name);
        return store.insertModel(tx, caller, {
          ...{ id: newUuid(), now: clock.now() },
          ...created(secrets, input, url),
        });
      });
    },

    list: (caller: Caller, page: PageRequest) => store.listModels(db, caller, page),

    async get(caller: Caller, id: string): Promise<ModelRow> {
      return found(await store.findModel(db, caller, pathId('model', id)));
    },

    /** A URL of another host removes the key: it was given for the host before. */
    async update(caller: Caller, id: string, change: ModelUpdate): Promise<ModelRow> {
      if (change.url !== undefined) requireSafeUrl(fetcher, 'url', change.url);
      requireHeaderToken('key', change.key);
      return db.begin(async (tx) => {
        const row = found(await store.lockModel(tx, caller, pathId('model', id)));
        if (change.name !== undefined && change.name !== row.name)
          await requireFreeName(tx, caller, change.name, row.id);
        const values = changed(secrets, row, change);
        requireKind({
          ...values,
          ...{ batch_texts: values.batchTexts, query_prefix: values.queryPrefix, passage_prefix: values.passagePrefix },
          ...{ query_input_type: values.queryInputType, passage_input_type: values.passageInputType },
          fusion_weight: values.fusionWeight,
        });
        await onChanged(tx, row);
        return store.updateModel(tx, row, values, clock.now());
      });
    },

    /** Makes one small call, and says what happened. Throws 429 if a budget refuses it. */
    async test(caller: Caller, id: string): Promise<Trial> {
      const row = found(await store.findModel(db, caller, pathId('model', id)));
      if (row.needsKey && row.key === null)
        return { ok: false, problem: 'no_key', message: 'The model has no key for its URL.', latencyMs: 0 };
      return tryModel({ appId: caller.appId, sandboxId: caller.sandboxId }, row.name);
    },

    async remove(caller: Caller, id: string): Promise<void> {
      found(await store.deleteModel(db, caller, pathId('model', id)));
    },

    /** The names that requests of the app may use. */
    listAvailable: (caller: Caller) => listAvailable(db, caller, operator),
  };
}

/** 422 on the member that does not fit what the model is for. */
function requireKind(model: Parameters<typeof findKindProblem>[0]): void {
  const wrong = findKindProblem(model);
  if (wrong !== undefined) throw invalidField(wrong.field, wrong.problem);
}

function created(secrets: Secrets, input: ModelCreate, url: string): store.ModelValues {
  return {
    ...{ name: input.name, provider: input.provider, model: input.model, url },
    key: input.key === undefined ? null : wrapKey(secrets, input.key, url),
    needsKey: input.key !== undefined || requiresKey(input.provider),
    contextTokens: input.context_tokens ?? null,
    outputTokens: input.output_tokens ?? null,
    timeoutSeconds: input.timeout_seconds ?? null,
    ...{ kind: input.kind ?? null, dimensions: input.dimensions ?? null, batchTexts: input.batch_texts ?? null },
    ...{ queryPrefix: input.query_prefix ?? null, passagePrefix: input.passage_prefix ?? null },
    queryInputType: input.query_input_type ?? null,
    passageInputType: input.passage_input_type ?? null,
    fusionWeight: input.fusion_weight ?? null,
    modalities: input.modalities ?? ['text'],
    inputPrice: input.prices?.input ?? null,
    outputPrice: input.prices?.output ?? null,
  };
}

function changed(secrets: Secrets, row: ModelRow, change: ModelUpdate): store.ModelValues {
  const url = change.url ?? row.url;
  const movesAway = new URL(url).origin !== new URL(row.url).origin;
  const kept = movesAway || change.key === null ? null : row.key;
  const prices = change.prices === undefined ? { input: row.inputPrice, output: row.outputPrice } : change.prices;
  return {
    name: change.name ?? row.name,
    provider: row.provider,
    model: change.model ?? row.model,
    url,
    key: typeof change.key === 'string' ? wrapKey(secrets, change.key, url) : kept,
    // It works without a key that was removed by request, and not without one that a new URL removed.
    needsKey: requiresKey(row.provider) || (change.key === null ? false : row.needsKey || change.key !== undefined),
    contextTokens: change.context_tokens === undefined ? row.contextTokens : change.context_tokens,
    outputTokens: change.output_tokens === undefined ? row.outputTokens : change.output_tokens,
    timeoutSeconds: change.timeout_seconds === undefined ? row.timeoutSeconds : change.timeout_seconds,
    ...{ kind: row.kind, dimensions: change.dimensions ?? row.dimensions },
    batchTexts: change.batch_texts === undefined ? row.batchTexts : change.batch_texts,
    queryPrefix: change.query_prefix === undefined ? row.queryPrefix : change.query_prefix,
    passagePrefix: change.passage_prefix === undefined ? row.passagePrefix : change.passage_prefix,
    queryInputType: change.query_input_type === undefined ? row.queryInputType : change.query_input_type,
    passageInputType: change.passage_input_type === undefined ? row.passageInputType : change.passage_input_type,
    fusionWeight: change.fusion_weight === undefined ? row.fusionWeight : change.fusion_weight,
    modalities: change.modalities ?? row.modalities,
    inputPrice: prices?.input ?? null,
    outputPrice: prices?.output ?? null,
  };
}
