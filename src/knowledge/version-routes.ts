import { everyCaller } from '../http/route/access.ts';
import { pageOf, pageQuery, readPage } from '../http/route/pages.ts';
import { type Api, ref } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import type { Knowledge } from './domain.ts';
import { presentIngestion } from './present.ts';
import { documentContentQuery, ingestionSchema } from './schema.ts';
import { presentComparison, presentVersion, presentVersionContent } from './versions/present.ts';
import * as schema from './versions/schema.ts';

const tag = 'Knowledge';
const source = '/api/v1/knowledge_sources/:source';
const versions = '/api/v1/knowledge_documents/:document/versions';
const version = `${versions}/:version`;
const sourceParams = Type.Object({ source: Type.String() });
const documentParams = Type.Object({ document: Type.String() });
const versionParams = Type.Object({
  document: Type.String(),
  version: Type.String({ pattern: '^[1-9][0-9]{0,8}$', description: 'The number of the version.' }),
});

/** Earlier versions of documents, and how they are restored. */
export function registerVersionRoutes(api: Api, { versions: service }: Knowledge): void {
  registerVersions(api, service);
  registerSourceRestore(api, service);
}

function registerVersions(api: Api, service: Knowledge['versions']): void {
  api.app(everyCaller, {
    method: 'GET',
    path: versions,
    operationId: 'listKnowledgeDocumentVersions',
    tag,
    summary: 'List the versions of a document',
    description:
      'Newest first, beginning with the current one. Who may read the document now sees them all; those of a deleted document are for callers that may change its source.',
    params: documentParams,
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(schema.versionRef) },
    handler: ({ caller, params, query }) =>
      readPage(query, (request) => service.list(caller, params.document, request), presentVersion),
  });

  api.app(everyCaller, {
    method: 'GET',
    path: version,
    operationId: 'getKnowledgeDocumentVersion',
    tag,
    summary: 'Read a version of a document',
    description: 'Its metadata and its text. With `offset` or `limit`, a slice of the text, as of a document.',
    params: versionParams,
    query: documentContentQuery,
    responses: { 200: ref(schema.versionContentSchema) },
    handler: async ({ caller, params, query }) =>
      presentVersionContent(await service.read(caller, params.document, Number(params.version), query)),
  });

  api.app(everyCaller, {
    method: 'GET',
    path: `${version}/comparison`,
    operationId: 'compareKnowledgeDocumentVersions',
    tag,
    summary: 'Compare a version of a document with another one',
    description: 'Line by line, with the one before by default. 504 if it takes too long.',
    params: versionParams,
    query: schema.comparisonQuery,
    responses: { 200: ref(schema.comparisonSchema) },
    handler: async ({ caller, params, query }) =>
      presentComparison(await service.compare(caller, params.document, Number(params.version), query.base)),
  });

  api.app(everyCaller, {
    method: 'POST',
    path: `${version}/restore`,
    operationId: 'restoreKnowledgeDocumentVersion',
    rateGroup: 'extractions',
    tag,
    summary: 'Make a version of a document the newest one',
    description:
      'Starts an ingestion that writes the version as a new one. A deleted document comes back under its id, with the readers that it had. 403 for callers that can only read its source, 409 for the current version.',
    params: versionParams,
    responses: { 201: ref(ingestionSchema) },
    handler: async ({ caller, params }) =>
      presentIngestion(await service.restore(caller, params.document, Number(params.version))),
  });
}

/** What was deleted from a source, and how it comes back. */
function registerSourceRestore(api: Api, service: Knowledge['versions']): void {
  api.app(everyCaller, {
    method: 'GET',
    path: `${source}/deleted_documents`,
    operationId: 'listDeletedKnowledgeDocuments',
    tag,
    summary: 'List the deleted documents of a source',
    description:
      'The last version of each whose versions are still kept, the latest deletion first. 403 for callers that can only read the source.',
    params: sourceParams,
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(schema.versionRef) },
    handler: ({ caller, params, query }) =>
      readPage(query, (request) => service.listDeleted(caller, params.source, request), presentVersion),
  });

  api.app(everyCaller, {
    method: 'GET',
    path: `${source}/restore`,
    operationId: 'planKnowledgeSourceRestore',
    tag,
    summary: 'See what restoring a source to a time would change',
    description:
      'Changes nothing. Requires the right to change the source, and counts the documents that the caller sees. 422 for a time of which no versions are kept.',
    params: sourceParams,
    query: schema.restorePlanQuery,
    responses: { 200: ref(schema.restorePlanSchema) },
    handler: ({ caller, params, query }) => service.plan(caller, params.source, query.at),
  });

  api.app(everyCaller, {
    method: 'POST',
    path: `${source}/restore`,
    operationId: 'restoreKnowledgeSource',
    rateGroup: 'extractions',
    tag,
    summary: 'Bring a source back to a time',
    description:
      'Starts an ingestion that gives every document the version of that time, brings back what was deleted since, and deletes what did not exist. Documents that the caller does not see stay as they are, and so does what is changed while it runs. 409 if it deletes more than half of the documents, unless `confirm_deletions` is set.',
    params: sourceParams,
    body: schema.restoreSchema,
    responses: { 201: ref(ingestionSchema) },
    handler: async ({ caller, params, body }) =>
      presentIngestion(await service.restoreSource(caller, params.source, body)),
  });
}
