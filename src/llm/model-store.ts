import type { Db } from '../db/database.ts';
import type { Scope } from '../tenancy/caller.ts';
import { inScope } from '../tenancy/visible.ts';
import type { ModelKind, Provider } from './operator-models.ts';

/** A model of an app. `key` is wrapped. */
export type ModelRow = {
  appId: string;
  id: string;
  sandboxId: string;
  name: string;
  /** Null: it writes text. */
  kind: ModelKind | null;
  provider: Provider;
  model: string;
  url: string;
  key: Buffer | null;
  needsKey: boolean;
  contextTokens: number | null;
  outputTokens: number | null;
  timeoutSeconds: number | null;
  dimensions: number | null;
  batchTexts: number | null;
  queryPrefix: string | null;
  passagePrefix: string | null;
  queryInputType: string | null;
  passageInputType: string | null;
  fusionWeight: number | null;
  modalities: string[];
  inputPrice: number | null;
  outputPrice: number | null;
  createdAt: Date;
  updatedAt: Date;
};

/** An ordered list of names of models. */
export type AliasRow = {
  appId: string;
  id: string;
  sandboxId: string;
  name: string;
  models: string[];
  createdAt: Date;
  updatedAt: Date;
};

export async function findAliasByName(db: Db, scope: Scope, name: string): Promise<AliasRow | undefined> {
  return db<AliasRow[]>`
    select a.* from model_aliases a where ${inScope(db, scope, 'a')} and a.name = ${name}`.first();
}

export async function listModelsByName(db: Db, scope: Scope, names: readonly string[]): Promise<ModelRow[]> {
  return db<ModelRow[]>`
    select m.* from models m where ${inScope(db, scope, 'm')} and m.name = any(${[...names]}::text[])`;
}
