/** Examples of query parameters by name. `operationId name` overrides the example for one operation. */
const examples: Record<string, unknown> = {
  action: 'deleteFile',
  actor: 'usr_06EvTxqXi7zYwBqTcg5t9h',
  'openaiListVectorStores after': 'vs_06EvTxqXqR8rTuDyL9iW0p',
  after: 'file-06EvTxqXi7zYwBqTcg5t9h',
  after_cursor: 'eyJhIjoxfQ',
  agent: 'agt_06EvTxqXjC2mUuYzG3dQ4r',
  automation: 'aut_06EvTxqXkL9sWnVxH5fT6y',
  extraction: 'ext_06EvTxqXpA4dGhJkL7zXcV',
  model: 'default',
  run: 'atr_06EvTxqXmB8nQwErT5yUiO',
  'openaiListVectorStores before': 'vs_06EvTxqXqR8rTuDyL9iW0p',
  before: 'file-06EvTxqXi7zYwBqTcg5t9h',
  code: 'SplxlOBeZQQYbYS6WxSbIA',
  content_type: 'application/pdf',
  credential: 'usr_06EvTxqXi7zYwBqTcg5t9h',
  cursor: 'bm90ZXMvMjAyNg',
  'verifyLedger cursor': 'segments.10',
  expires: 1_772_366_400,
  external_id: 'research',
  installation: 'cin_06EvTxqXmN4pRtBwJ7gU8i',
  'listKvEntries key': 'notes/',
  key: 'notes/today',
  limit: 50,
  lookup_key: 'handbook',
  name: 'Harbour rules',
  namespace: 'https://login.example.com',
  offset: 1,
  org: 'org_06EvTxqXnP6qStCxK8hV9o',
  page: 1,
  page_size: 25,
  prefix: 'notes/',
  publishable_key: 'pk_EXAMPLE',
  request: 'EXAMPLE',
  q: 'Opening',
  resource: 'fil_06EvTxqXi7zYwBqTcg5t9h',
  retried_from: 'atr_06EvTxqXqR8rTuDyL9iW0p',
  search: 'report',
  segment: 57,
  share: true,
  signature: 'EXAMPLE',
  since: '2026-03-01T00:00:00.000Z',
  source: 'cso_06EvTxqXqR8rTuDyL9iW0p',
  state: 'EXAMPLE',
  team: 'tem_06EvTxqXrS0sUvEzM0jX1a',
  thread: 'thr_06EvTxqXsT2tVwF0N1kY2s',
  token: 'EXAMPLE',
  'listKnowledgeSources type': 'knowledge/documents',
  type: 'file.created',
  until: '2026-04-01T00:00:00.000Z',
  user: 'usr_06EvTxqXi7zYwBqTcg5t9h',
  user_search: 'ada',
  version: 2,
};

type Schema = { type?: string; enum?: unknown[]; anyOf?: Schema[] };

/** An example value of the parameter, or undefined if there is none. */
export function exampleOfQuery(operationId: string, name: string, schema: Schema): unknown {
  if (schema.enum !== undefined) return schema.enum[0];
  const value = examples[`${operationId} ${name}`] ?? examples[name];
  return schema.type === 'array' ? [value] : value;
}
