import type { Db } from '../db/database.ts';
import { compact } from '../http/route/present.ts';
import type { AliasRow, ModelRow } from '../llm/model-store.ts';
import type { OperatorModel, OperatorModels } from '../llm/operator-models.ts';
import { requiresKey } from '../llm/registry.ts';
import type { Scope } from '../tenancy/caller.ts';
import * as store from './store.ts';

const everything = { page: 1, pageSize: 1_000, offset: 0 };

/** The models and aliases that requests of an app may name, by name. The URLs of the operator are not shown. */
export async function listAvailable(db: Db, scope: Scope, operator: OperatorModels) {
  const [models] = await store.listModels(db, scope, everything);
  const [aliases] = await store.listAliases(db, scope, everything);
  const own = new Set([...models, ...aliases].map(({ name }) => name));
  const isUsable = (name: string): boolean => {
    const row = models.find((each) => each.name === name);
    if (row !== undefined) return !row.needsKey || row.key !== null;
    const given = operator.models.get(name);
    return given !== undefined && hasKey(given);
  };
  const isAliasUsable = (names: readonly string[]) => names.some(isUsable);
  const rest = [
    ...[...operator.models.values()].map((given) => presentOperatorModel(given, operator.default)),
    ...[...operator.aliases].map(([name, members]) => presentList('operator', name, members, operator.default)),
  ].filter(({ name }) => !own.has(name));
  return [...models.map(presentOwnModel), ...aliases.map((row) => presentOwnAlias(row)), ...rest]
    .map((each) => ('models' in each && each.models ? { ...each, usable: isAliasUsable(each.models) } : each))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}

function presentOwnModel(row: ModelRow) {
  const prices = row.inputPrice === null ? null : { input: row.inputPrice, output: row.outputPrice ?? 0 };
  return compact({
    ...{ name: row.name, kind: 'model' as const, from: 'app' as const, is_default: false },
    usable: !row.needsKey || row.key !== null,
    ...{
      purpose: row.kind,
      dimensions: row.dimensions,
      provider: row.provider,
      model: row.model,
      context_tokens: row.contextTokens,
      modalities: row.modalities,
      prices,
    },
  });
}

function presentOwnAlias({ name, models }: AliasRow) {
  return presentList('app', name, models, undefined);
}

function presentOperatorModel(given: OperatorModel, chosen: string | undefined) {
  const { name, kind: purpose, dimensions, provider, model, context_tokens, modalities = ['text'], prices } = given;
  return compact({
    ...{ name, kind: 'model' as const, from: 'operator' as const, is_default: name === chosen, usable: hasKey(given) },
    ...{ purpose, dimensions, provider, model, context_tokens, modalities, prices },
  });
}

function presentList(from: 'app' | 'operator', name: string, models: readonly string[], chosen: string | undefined) {
  return { name, kind: 'alias' as const, from, is_default: name === chosen, usable: false, models: [...models] };
}

function hasKey({ provider, key }: OperatorModel): boolean {
  return !requiresKey(provider) || key !== undefined;
}
