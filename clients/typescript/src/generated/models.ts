// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const models = (c: Connection) => ({
  /** Create a model. */
  create: (body: S.CreateModelRequest, options?: CallOptions): Promise<S.Model> => c.send('POST', '/api/v1/models', body, options),
  /** List models. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.Model, S.ModelPage> => c.list('/api/v1/models', query, options),
  /** Get a model. */
  get: (model: string, options?: CallOptions): Promise<S.Model> => c.get(path`/api/v1/models/${model}`, undefined, options),
  /** Update a model. */
  update: (model: string, body?: S.UpdateModelRequest, options?: CallOptions): Promise<S.Model> => c.send('PATCH', path`/api/v1/models/${model}`, body, options),
  /** Delete a model. */
  delete: (model: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/models/${model}`, undefined, options),
  /** Create an alias of models. */
  createAlias: (body: S.CreateModelAliasRequest, options?: CallOptions): Promise<S.ModelAlias> => c.postOnce('/api/v1/model_aliases', body, options),
  /** List aliases of models. */
  listAliases: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.ModelAlias, S.ModelAliasPage> => c.list('/api/v1/model_aliases', query, options),
  /** Get an alias of models. */
  getAlias: (modelAlias: string, options?: CallOptions): Promise<S.ModelAlias> => c.get(path`/api/v1/model_aliases/${modelAlias}`, undefined, options),
  /** Update an alias of models. */
  updateAlias: (modelAlias: string, body?: S.UpdateModelAliasRequest, options?: CallOptions): Promise<S.ModelAlias> => c.send('PATCH', path`/api/v1/model_aliases/${modelAlias}`, body, options),
  /** Delete an alias of models. */
  deleteAlias: (modelAlias: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/model_aliases/${modelAlias}`, undefined, options),
  /** List the models that requests may name. */
  listAvailable: (options?: CallOptions): Promise<S.ListAvailableModelsResponse> => c.get('/api/v1/available_models', undefined, options),
  /** List calls of models. */
  listCalls: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** The name of the model. */
model?: string | undefined; /** How it ended. `abandoned`: its process was killed, and what it reserved counts. */
status?: 'running' | 'succeeded' | 'failed' | 'abandoned' | undefined; /** Only calls for this user. */
user?: string | undefined; /** Only calls for this agent. */
agent?: string | undefined; /** Only calls of this automation. */
automation?: string | undefined; /** Only calls of this run. */
run?: string | undefined; /** Only calls of this extraction. */
extraction?: string | undefined; /** At or after this time (ISO 8601). */
since?: string | undefined; /** Before this time (ISO 8601). */
until?: string | undefined; }, options?: CallOptions): Pages<S.ModelCall, S.ModelCallPage> => c.list('/api/v1/model_calls', query, options),
  /** Get a call of a model. */
  getCall: (modelCall: string, options?: CallOptions): Promise<S.ModelCall> => c.get(path`/api/v1/model_calls/${modelCall}`, undefined, options),
  /** Create a budget for models. */
  createBudget: (body: S.CreateModelBudgetRequest, options?: CallOptions): Promise<S.ModelBudget> => c.postOnce('/api/v1/model_budgets', body, options),
  /** List budgets for models. */
  listBudgets: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.ModelBudget, S.ModelBudgetPage> => c.list('/api/v1/model_budgets', query, options),
  /** Get a budget for models. */
  getBudget: (modelBudget: string, options?: CallOptions): Promise<S.ModelBudget> => c.get(path`/api/v1/model_budgets/${modelBudget}`, undefined, options),
  /** Update a budget for models. */
  updateBudget: (modelBudget: string, body?: S.UpdateModelBudgetRequest, options?: CallOptions): Promise<S.ModelBudget> => c.send('PATCH', path`/api/v1/model_budgets/${modelBudget}`, body, options),
  /** Delete a budget for models. */
  deleteBudget: (modelBudget: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/model_budgets/${modelBudget}`, undefined, options),
  /** List what is used of a budget. */
  listBudgetUses: (modelBudget: string, query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.ModelBudgetUse, S.ModelBudgetUsePage> => c.list(path`/api/v1/model_budgets/${modelBudget}/uses`, query, options),
  /** List what models were used for. */
  usage: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** What calls are grouped by. Default `day`. With a key of production, `sandbox` counts all sandboxes. */
by?: 'sandbox' | 'user' | 'agent' | 'automation' | 'run' | 'model' | 'day' | undefined; /** Calls at or after this time (ISO 8601). */
since?: string | undefined; /** Calls before this time (ISO 8601). */
until?: string | undefined; }, options?: CallOptions): Pages<S.ModelUsage, S.ModelUsagePage> => c.list('/api/v1/usage/models', query, options),
  /** Export what models were used for. */
  exportUsage: (query?: { /** What calls are grouped by. Default `day`. With a key of production, `sandbox` counts all sandboxes. */
by?: 'sandbox' | 'user' | 'agent' | 'automation' | 'run' | 'model' | 'day' | undefined; /** Calls at or after this time (ISO 8601). */
since?: string | undefined; /** Calls before this time (ISO 8601). */
until?: string | undefined; }, options?: CallOptions): Promise<void> => c.get('/api/v1/usage/models/csv', query, options),
  /** Try a model. */
  test: (model: string, options?: CallOptions): Promise<S.ModelTest> => c.postOnce(path`/api/v1/models/${model}/test`, undefined, options),
});
