import type { TestApp } from '../provisioner.ts';
import type { Recorder } from './recorder.ts';

/** Records models, aliases and budgets. */
export async function recordModels(recorder: Recorder, agent: string): Promise<void> {
  const { id } = await recorder.record('createModel', {
    body: {
      ...{
        name: 'small',
        provider: 'anthropic',
        model: 'claude-haiku-4-5',
        key: 'sk-ant-4f1c29',
        context_tokens: 200_000,
      },
      prices: { input: 1_000_000, output: 5_000_000 },
    },
  });
  const path = { model: id };
  await recorder.record('listModels');
  await recorder.record('getModel', { path });
  const keyless = { name: 'keyless', provider: 'google', model: 'gemini-flash-lite' };
  const { body: tried } = await recorder.send<{ id: string }>('createModel', { body: keyless });
  await recorder.record('testModel', { path: { model: tried.id } });
  await recorder.send('deleteModel', { path: { model: tried.id } });
  await recorder.record('updateModel', { path, body: { output_tokens: 8_192 } });
  const alias = await recorder.record('createModelAlias', { body: { name: 'fast', models: ['small', 'default'] } });
  const aliasPath = { model_alias: alias.id };
  await recorder.record('listModelAliases');
  await recorder.record('getModelAlias', { path: aliasPath });
  await recorder.record('updateModelAlias', { path: aliasPath, body: { models: ['default', 'small'] } });
  await recorder.record('listAvailableModels');
  await recorder.record('deleteModelAlias', { path: aliasPath });
  await recorder.record('deleteModel', { path });
  const { body: embedder } = await recorder.send<{ id: string }>('createModel', {
    body: {
      ...{
        name: 'meanings',
        kind: 'embedding',
        provider: 'openai',
        model: 'text-embedding-3-small',
        dimensions: 1_536,
      },
      ...{ url: 'https://api.openai.com/v1', key: 'sk-5d20b7', prices: { input: 20_000, output: 0 } },
    },
  });
  const { body: source } = await recorder.send<{ id: string }>('createKnowledgeSource', {
    body: { type: 'knowledge/documents', agent, embedder: 'meanings' },
  });
  const ofSource = { source: source.id };
  await recorder.record('getKnowledgeEmbedding', { path: ofSource, query: { embedder: 'meanings' } });
  await recorder.send('deleteKnowledgeSource', { path: ofSource });
  await recorder.send('deleteModel', { path: { model: embedder.id } });
}

/** Records a budget, the work that uses it, and what its calls were, in a separate app. */
export async function recordModelUse(recorder: Recorder, app: TestApp, work: () => Promise<void>): Promise<void> {
  const as = { key: app.secretKey };
  const body = { subject: 'app', period: 'day', tokens: 100_000, soft_tokens: 80_000 };
  const budget = await recorder.record('createModelBudget', { as, body });
  const path = { model_budget: budget.id };
  await recorder.record('listModelBudgets', { as });
  await recorder.record('getModelBudget', { as, path });
  await recorder.record('updateModelBudget', { as, path, body: { tokens: 200_000 } });
  await work();
  const calls = await recorder.record<{ data: { id: string }[] }>('listModelCalls', { as });
  await recorder.record('getModelCall', { as, path: { model_call: calls.data[0]?.id ?? '' } });
  await recorder.record('listModelUsage', { as, query: { by: 'model' } });
  await recorder.record('exportModelUsage', { as, query: { by: 'model' } });
  await recorder.record('listModelBudgetUses', { as, path });
  await recorder.record('deleteModelBudget', { as, path });
}
