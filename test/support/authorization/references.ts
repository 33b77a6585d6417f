import type { IdKind } from '../../../src/lib/ids.ts';
import { readProjectFile } from '../source.ts';

/* Finds in openapi.json where a request can name resources outside of its path, and classifies these members. */

type Schema = {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  patternProperties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
};
type Operation = {
  requestBody?: { content: Record<string, { schema: Schema }> };
  parameters?: { name: string; in: string; schema: Schema }[];
};

const document = JSON.parse(readProjectFile('openapi.json')) as {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
};

/** Every operation in the notation of routes, `METHOD /path/:name`, with its text members. */
export const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    name: `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ':$1')}`,
    members: membersOf(operation),
  })),
);

function membersOf({ requestBody, parameters = [] }: Operation): Set<string> {
  const members = new Set<string>();
  // The fields of forms name no resources: `file` is the bytes.
  const body = requestBody?.content['application/json'];
  if (body !== undefined) walk(body.schema, 'body', members);
  for (const { name, in: place, schema } of parameters) if (place === 'query') walk(schema, `query.${name}`, members);
  return members;
}

function walk(given: Schema, path: string, members: Set<string>): void {
  let schema = given;
  while (schema.$ref !== undefined) schema = document.components.schemas[schema.$ref.split('/').at(-1) ?? ''] ?? {};
  const choices = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
  for (const choice of choices) walk(choice, path, members);
  for (const [name, member] of Object.entries(schema.properties ?? {})) walk(member, `${path}.${name}`, members);
  const free = [schema.additionalProperties, ...Object.values(schema.patternProperties ?? {})];
  for (const member of free) if (typeof member === 'object') walk(member, `${path}.*`, members);
  if (schema.items) walk(schema.items, path, members);
  // Members with a fixed set of values name nothing.
  if ('enum' in schema || 'const' in schema) return;
  const isAnything = schema.type === undefined && choices.length === 0 && schema.properties === undefined;
  if (schema.type === 'string' || isAnything) members.add(path);
}

export type Reference = Extract<
  IdKind,
  'agent' | 'file' | 'installation' | 'org' | 'sandbox' | 'source' | 'team' | 'thread' | 'user'
>;

/** Members that name a resource, with its kind. `operation member` overrides the entry for one operation. */
const references: Record<string, Reference | readonly Reference[]> = {
  'body.acl.add.principal': ['user', 'team', 'org', 'agent'],
  'body.acl.grants.principal': ['user', 'team', 'org', 'agent'],
  'body.acl.remove.principal': ['user', 'team', 'org', 'agent'],
  'body.add.principal': ['user', 'team', 'org', 'agent'],
  'body.grants.principal': ['user', 'team', 'org', 'agent'],
  'body.remove.principal': ['user', 'team', 'org', 'agent'],
  'body.users': 'user',
  'body.agent': 'agent',
  'body.claims.org.values.*': 'org',
  'body.claims.teams.values.*': 'team',
  'body.file': 'file',
  'body.file_id': 'file',
  'body.file_ids': 'file',
  'body.files.file_id': 'file',
  'body.items.file': 'file',
  'body.upserts.file': 'file',
  'body.org': 'org',
  'body.parent_source': 'source',
  'body.participants.*': 'agent',
  'POST /api/v1/knowledge_sources body.payload.*': 'file',
  'PATCH /api/v1/knowledge_sources/:source body.payload.*': 'file',
  'body.run_as_agent': 'agent',
  'body.run_as_user': 'user',
  'body.sandbox': 'sandbox',
  'body.sources': 'source',
  'body.team': 'team',
  'body.thread': 'thread',
  'body.user': 'user',
  // Naming one erases it, so test/api/erasures and the matrix check these with things of their own.
  'POST /api/v1/erasures body.user': [],
  'POST /api/v1/erasures body.source': [],
  'POST /protected/api/v1/developer/apps/:app/erasures body.user': [],
  'POST /protected/api/v1/developer/apps/:app/erasures body.source': [],
  'query.actor': 'user',
  'query.agent': 'agent',
  'query.credential': 'user',
  'query.installation': 'installation',
  'query.org': 'org',
  'query.resource': 'user',
  'query.source': 'source',
  'query.team': 'team',
  'query.thread': 'thread',
  'query.user': 'user',
};

/** Members that name nothing: the client's own text, and text that the server checks in another way. */
const plainText = new Set(
  `body body.acl.add.actions body.acl.grants.actions body.add.actions body.grants.actions body.namespace body.external_id
  query.namespace query.external_id body.audience body.checksum body.claims.name
  body.claims.groups.claim body.concurrency.key body.rate.key body.rate.per
  body.claims.org.claim body.claims.role.claim body.claims.teams.claim body.console.client_id
  body.console.client_secret body.issuer body.jwks_url body.content body.content.content_type
  body.content.data body.content.filename body.content_type body.data body.description body.destination_path
  body.developer_token body.email body.events body.error.code body.error.message body.exclude_paths body.facets body.filename body.filter
  body.filter.* body.id body.idempotency_key body.identity body.include_paths body.items.content.content_type
  body.items.content.data body.items.content.filename body.items.metadata.* body.items.title body.jsonrpc body.key
  body.logo.data body.logo.filename body.logo.mime_type body.lookup_key body.metadata.* body.method body.model
  body.name body.originator body.params body.params.* body.password body.payload body.payload.* body.phone_number
  body.profile_picture.data body.profile_picture.filename body.profile_picture.mime_type body.provider_metadata.*
  body.publishable_key body.query body.quotes body.documents body.versions.document body.at query.at body.refresh_token body.result body.schedule body.scopes body.secret
  body.sign_in_code body.slug
  body.source_types body.text body.timezone body.title body.trigger body.type body.url body.value body.workflow
  body.identity_issuer body.input_schema body.instructions body.schema.* body.operations.if_match body.operations.if_none_match body.operations.key body.operations.value
  body.credentials.access_key_id body.credentials.password body.credentials.secret_access_key
  body.credentials.session_token body.credentials.token body.credentials.username
  body.cursor body.document body.deletes.external_id body.upserts.content.content_type body.upserts.content.data
  body.upserts.content.filename body.upserts.external_id body.upserts.metadata.* body.upserts.source_url body.upserts.title
  body.after_cursor body.automation_run body.automations body.claim body.code_version body.entries.automation body.entries.error.code
  body.entries.error.message body.entries.name body.entries.node_id body.entries.payload body.entries.until
  body.entries.question body.entries.users body.entries.teams body.entries.org
  body.release.workflow_changed.expected body.release.workflow_changed.found
  body.attributes.* body.chunking_strategy body.files.attributes.* body.files.chunking_strategy body.filters.*
  query.after query.before
  body.from.node body.outputs.* body.to query.retried_from
  body.input body.input.* body.include body.text.format.description body.text.format.name body.text.format.schema.*
  body.tools.filters.* body.tools.vector_store_ids body.previous_response_id
  body.embedder query.embedder body.rerank_model body.query_prefix body.passage_prefix
  body.query_input_type body.passage_input_type body.fusion_weight
  body.models body.subject_id query.extraction query.model query.run
  query.request body.request body.client_name body.client_uri body.redirect_uris body.grant_types body.response_types
  body.token_endpoint_auth_method query.code query.publishable_key query.state
  query.action query.after_cursor query.automation query.automation_run query.content_type query.cursor query.segment query.key query.name query.prefix query.q
  query.lookup_key query.search query.signature query.since
  query.token query.type query.until query.user_search`.split(/\s+/),
);

/** The kinds of resource that a member names: an empty list for plain text, undefined for an unclassified member. */
export function kindsNamedBy(operation: string, member: string): readonly Reference[] | undefined {
  const kind = references[`${operation} ${member}`] ?? references[member];
  if (kind !== undefined) return typeof kind === 'string' ? [kind] : kind;
  return plainText.has(member) ? [] : undefined;
}

/** The request's body or query, naming the resource. */
export function withReference(
  base: { body?: Record<string, unknown>; query?: Record<string, string> },
  member: string,
  kind: Reference,
  id: string,
): { body?: Record<string, unknown>; query?: Record<string, string> } {
  const [place, ...names] = member.split('.');
  if (place === 'query') return { ...base, query: { ...base.query, [names[0] ?? '']: id } };
  const [first = '', second = ''] = names;
  const principal = { principal_type: kind, principal: id };
  const grant = second === 'remove' ? principal : { ...principal, actions: ['read'] };
  const values: Record<string, unknown> = {
    // With everyone, so that the caller stays among the readers.
    acl: { [second]: second === 'grants' ? [grant, { principal_type: 'everyone', actions: ['read'] }] : [grant] },
    add: [grant, { principal_type: 'everyone' }],
    grants: [grant, { principal_type: 'everyone' }],
    remove: [principal],
    users: [id],
    claims: { [second]: { claim: 'groups', values: { group: id } } },
    file_ids: [id],
    files: [{ file_id: id }],
    items: [{ file: id }],
    upserts: [{ external_id: 'one', file: id }],
    participants: { reviewer: id },
    payload: { file: id },
    sources: [id],
  };
  return { ...base, body: { ...base.body, [first]: values[first] ?? id } };
}
