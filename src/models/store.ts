import type { Db } from '../db/database.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { AliasRow, ModelRow } from '../llm/model-store.ts';
import type { Scope } from '../tenancy/caller.ts';
import { inScope } from '../tenancy/visible.ts';

/** What an app may set of a model. `key` is wrapped. */
export type ModelValues = Omit<ModelRow, 'appId' | 'sandboxId' | 'id' | 'createdAt' | 'updatedAt'>;

export async function insertModel(
  db: Db,
  { appId, sandboxId }: Scope,
  { id, now, ...model }: ModelValues & { id: string; now: Date },
): Promise<ModelRow> {
  return db<[ModelRow]>`
    insert into models (app_id, sandbox_id, id, name, provider, model, url, key, needs_key, context_tokens,
      output_tokens, timeout_seconds, modalities, input_price, output_price, created_at, updated_at, kind,
      dimensions, batch_texts, query_prefix, passage_prefix, query_input_type, passage_input_type, fusion_weight)
    values (${appId}, ${sandboxId}, ${id}, ${model.name}, ${model.provider}, ${model.model}, ${model.url}, ${model.key},
      ${model.needsKey}, ${model.contextTokens}, ${model.outputTokens}, ${model.timeoutSeconds}, ${model.modalities},
      ${model.inputPrice}, ${model.outputPrice}, ${now}, ${now}, ${model.kind}, ${model.dimensions}, ${model.batchTexts},
      ${model.queryPrefix}, ${model.passagePrefix}, ${model.queryInputType}, ${model.passageInputType},
      ${model.fusionWeight})
    returning *`.first();
}

export async function countModels(db: Db, scope: Scope): Promise<number> {
  const [count] = await db<
    [{ total: number }]
  >`select count(*) as total from models m where ${inScope(db, scope, 'm')}`;
  return count.total;
}

export async function findModel(db: Db, scope: Scope, id: string): Promise<ModelRow | undefined> {
  return db<ModelRow[]>`select m.* from models m where ${inScope(db, scope, 'm')} and m.id = ${id}`.first();
}

export async function lockModel(tx: Db, scope: Scope, id: string): Promise<ModelRow | undefined> {
  return tx<ModelRow[]>`
    select m.* from models m where ${inScope(tx, scope, 'm')} and m.id = ${id} for update`.first();
}

export async function listModels(db: Db, scope: Scope, page: PageRequest): Promise<[ModelRow[], number]> {
  const rows = await db<ModelRow[]>`
    select m.* from models m where ${inScope(db, scope, 'm')}
    order by m.created_at desc, m.id desc limit ${page.pageSize} offset ${page.offset}`;
  return [rows, await countModels(db, scope)];
}

export async function updateModel(tx: Db, row: ModelRow, values: ModelValues, now: Date): Promise<ModelRow> {
  return tx<[ModelRow]>`
    update models set name = ${values.name}, model = ${values.model}, url = ${values.url}, key = ${values.key},
      needs_key = ${values.needsKey}, context_tokens = ${values.contextTokens}, output_tokens = ${values.outputTokens},
      timeout_seconds = ${values.timeoutSeconds}, dimensions = ${values.dimensions},
      batch_texts = ${values.batchTexts}, query_prefix = ${values.queryPrefix},
      passage_prefix = ${values.passagePrefix}, query_input_type = ${values.queryInputType},
      passage_input_type = ${values.passageInputType}, fusion_weight = ${values.fusionWeight}, modalities = ${values.modalities},
      input_price = ${values.inputPrice}, output_price = ${values.outputPrice}, updated_at = ${now}
    where app_id = ${row.appId} and id = ${row.id} returning *`.first();
}

export async function deleteModel(db: Db, scope: Scope, id: string): Promise<boolean> {
  return db`delete from models m where ${inScope(db, scope, 'm')} and m.id = ${id}`.any();
}

export async function insertAlias(
  db: Db,
  { appId, sandboxId }: Scope,
  { id, name, models, now }: { id: string; name: string; models: string[]; now: Date },
): Promise<AliasRow> {
  return db<[AliasRow]>`
    insert into model_aliases (app_id, sandbox_id, id, name, models, created_at, updated_at)
    values (${appId}, ${sandboxId}, ${id}, ${name}, ${models}, ${now}, ${now}) returning *`.first();
}

export async function countAliases(db: Db, scope: Scope): Promise<number> {
  const [count] = await db<
    [{ total: number }]
  >`select count(*) as total from model_aliases a where ${inScope(db, scope, 'a')}`;
  return count.total;
}

export async function findAlias(db: Db, scope: Scope, id: string): Promise<AliasRow | undefined> {
  return db<AliasRow[]>`select a.* from model_aliases a where ${inScope(db, scope, 'a')} and a.id = ${id}`.first();
}

export async function listAliases(db: Db, scope: Scope, page: PageRequest): Promise<[AliasRow[], number]> {
  const rows = await db<AliasRow[]>`
    select a.* from model_aliases a where ${inScope(db, scope, 'a')}
    order by a.created_at desc, a.id desc limit ${page.pageSize} offset ${page.offset}`;
  return [rows, await countAliases(db, scope)];
}

export async function updateAlias(
  db: Db,
  scope: Scope,
  id: string,
  change: { name?: string | undefined; models?: string[] | undefined },
  now: Date,
): Promise<AliasRow | undefined> {
  return db<AliasRow[]>`
    update model_aliases a set name = coalesce(${change.name ?? null}, a.name),
      models = coalesce(${change.models ?? null}::text[], a.models), updated_at = ${now}
    where ${inScope(db, scope, 'a')} and a.id = ${id} returning *`.first();
}

export async function deleteAlias(db: Db, scope: Scope, id: string): Promise<boolean> {
  return db`delete from model_aliases a where ${inScope(db, scope, 'a')} and a.id = ${id}`.any();
}

/** The names in use in a space, each with what has it. */
export function listNames(db: Db, scope: Scope): Promise<{ id: string; name: string; kind: 'model' | 'alias' }[]> {
  return db<{ id: string; name: string; kind: 'model' | 'alias' }[]>`
    select m.id, m.name, 'model' as kind from models m where ${inScope(db, scope, 'm')}
    union all
    select a.id, a.name, 'alias' as kind from model_aliases a where ${inScope(db, scope, 'a')}`;
}
