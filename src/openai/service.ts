import type { Static } from 'typebox';
import type { Database } from '../db/database.ts';
import type { Keyset } from '../db/pages.ts';
import type { Tallied } from '../knowledge/attached-files/service.ts';
import type { Knowledge } from '../knowledge/domain.ts';
import { documents } from '../knowledge/kinds/documents.ts';
import type { VisibleSource } from '../knowledge/sources/find.ts';
import type { SourceRow } from '../knowledge/sources/store.ts';
import { defined } from '../lib/defined.ts';
import { invalidField, notFound } from '../lib/errors.ts';
import { formatId, nativeId } from '../lib/ids.ts';
import { limits } from '../lib/limits.ts';
import type { Caller } from '../tenancy/caller.ts';
import { nameMissing } from './errors.ts';
import { readFilters } from './filters.ts';
import { storeMember, storeMemberOf } from './present.ts';
import { requireAutoChunking } from './request.ts';
import type { batchCreateSchema, searchSchema, vectorStoreCreateSchema, vectorStoreUpdateSchema } from './schema.ts';

export type OpenAiService = ReturnType<typeof createOpenAiService>;

type StoreWithTally = { source: SourceRow; tally: Tallied | undefined };

const resultsDefault = 10;

/** Vector stores are sources of documents. Members that a source does not have are stored in its metadata. */
export function createOpenAiService({ db, knowledge }: { db: Database; knowledge: Knowledge }) {
  const { sources, attachments } = knowledge;

  /** 404 unless the caller may see it. */
  async function getStore(caller: Caller, id: string): Promise<VisibleSource> {
    const source = await sources.get(db, caller, nativeId(id));
    if (source.type !== documents.type) throw notFound();
    return source;
  }

  /** 404 unless the caller may see it, 403 unless they may change it. */
  async function getStoreForChange(caller: Caller, id: string): Promise<VisibleSource> {
    await getStore(caller, id);
    return sources.getForChange(db, caller, nativeId(id), 'update');
  }

  async function withTally(caller: Caller, source: SourceRow): Promise<StoreWithTally> {
    return { source, tally: (await attachments.tally(caller, [source.id])).get(source.id) };
  }

  async function attachFiles(caller: Caller, source: VisibleSource, input: Static<typeof batchCreateSchema>) {
    const given = readBatch(input);
    return nameMissing('file_ids', attachments.attachBatch(db, caller, source, given));
  }

  return {
    getStore,
    getStoreForChange,

    /** @param org the owning organisation; by default the calling user, or for a key the app itself */
    createStore: async (caller: Caller, input: Static<typeof vectorStoreCreateSchema>, org: string | undefined) =>
      withTally(caller, await createSource(db, knowledge, caller, input, org)),

    async listStores(caller: Caller, keyset: Keyset): Promise<{ stores: StoreWithTally[]; hasMore: boolean }> {
      const { rows, hasMore } = await sources.listByKeyset(caller, documents.type, keyset);
      const tallies = await attachments.tally(
        caller,
        rows.map((row) => row.id),
      );
      return { stores: rows.map((source) => ({ source, tally: tallies.get(source.id) })), hasMore };
    },

    describeStore: async (caller: Caller, id: string) => withTally(caller, await getStore(caller, id)),

    async updateStore(
      caller: Caller,
      id: string,
      { name, metadata }: Static<typeof vectorStoreUpdateSchema>,
    ): Promise<StoreWithTally> {
      const source = await getStoreForChange(caller, id);
      const before = storeMemberOf(source);
      const { [storeMember]: _member, ...others } = source.metadata ?? {};
      const members = metadata === undefined ? others : { ...objectsOf(others), ...metadata };
      const after = name === undefined ? before : { ...before, name: name ?? '' };
      const changed = metadataOf(members, after);
      return withTally(caller, await sources.update(caller, formatId('source', source.id), { metadata: changed }));
    },

    async deleteStore(caller: Caller, id: string): Promise<void> {
      await getStore(caller, id);
      await sources.remove(caller, nativeId(id));
    },

    attachFiles,

    searchStore: async (caller: Caller, id: string, input: Static<typeof searchSchema>) =>
      searchSource(knowledge, caller, await getStore(caller, id), input),
  };
}

async function createSource(
  db: Database,
  { sources, attachments }: Knowledge,
  caller: Caller,
  input: Static<typeof vectorStoreCreateSchema>,
  org: string | undefined,
): Promise<SourceRow> {
  requireAutoChunking(input.chunking_strategy);
  const metadata = metadataOf(input.metadata ?? {}, {
    ...(input.name ? { name: input.name } : {}),
    ...defined({ description: input.description }),
  });
  const owner = ownerOf(caller, org);
  const nobody = { orgId: null, teamId: null, userId: null, agentId: null };
  const ownedBy = owner === undefined ? nobody : undefined;
  return db.begin(async (tx) => {
    const row = await sources.create(tx, caller, { type: documents.type, metadata, ...owner }, ownedBy);
    if (input.file_ids?.length) {
      const source = await sources.get(tx, caller, formatId('source', row.id));
      const files = readBatch({ file_ids: input.file_ids });
      await nameMissing('file_ids', attachments.attachBatch(tx, caller, source, files));
    }
    return row;
  });
}

async function searchSource(
  { search, attachments }: Knowledge,
  caller: Caller,
  source: SourceRow,
  input: Static<typeof searchSchema>,
) {
  const queries = Array.isArray(input.query) ? input.query : [input.query];
  const query = queries.join('\n');
  if (query.length > 10_000) throw invalidField('query', 'has more than 10000 characters');
  const { ranker, score_threshold: threshold = 0 } = input.ranking_options ?? {};
  const { hits } = await search.searchSource(caller, formatId('source', source.id), {
    query,
    max_results: input.max_num_results ?? resultsDefault,
    ...(input.filters === undefined ? {} : { filter: readFilters(input.filters) }),
    ...(ranker === 'none' ? { rerank: false } : {}),
    ...(threshold > 0 ? { mode: 'vector', min_similarity: threshold } : {}),
  });
  const files = await attachments.filesOf(
    source.appId,
    hits.map(({ row }) => row.documentId),
  );
  return { queries, hits: hits.map((hit) => ({ hit, file: files.get(hit.row.documentId) })) };
}

function ownerOf(caller: Caller, org: string | undefined): { org?: string; user?: string; agent?: string } | undefined {
  if (org !== undefined) return { org };
  if (caller.kind === 'user') return { user: formatId('user', caller.userId) };
  if (caller.kind === 'agent') return { agent: formatId('agent', caller.agentId) };
  return undefined;
}

function metadataOf(members: Record<string, unknown>, store: Record<string, unknown>): Record<string, unknown> {
  if (members[storeMember] !== undefined)
    throw invalidField(`metadata.${storeMember}`, 'is the name of a member of the server');
  const metadata = Object.keys(store).length === 0 ? members : { ...members, [storeMember]: store };
  if (Buffer.byteLength(JSON.stringify(metadata)) > limits.metadataBytesMax)
    throw invalidField('metadata', `is larger than ${limits.metadataBytesMax} bytes`);
  return metadata;
}

/** The members of a source's metadata that are not text, which a vector store's `metadata` cannot show or change. */
function objectsOf(metadata: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(metadata).filter(([, value]) => typeof value !== 'string'));
}

/** Reads either `file_ids`, with attributes for all of them, or `files`, each with its own. */
function readBatch({
  file_ids: ids,
  files,
  attributes,
  chunking_strategy: strategy,
}: Static<typeof batchCreateSchema>) {
  if ((ids === undefined) === (files === undefined))
    throw invalidField('file_ids', 'exactly one of file_ids and files is required');
  if (files !== undefined && attributes !== undefined)
    throw invalidField('attributes', 'must be set for each of files');
  requireAutoChunking(strategy);
  const listed = files ?? ids?.map((file_id) => ({ file_id, attributes, chunking_strategy: undefined })) ?? [];
  const seen = new Set<string>();
  return listed.map(({ file_id: id, attributes: own, chunking_strategy: ownStrategy }, i) => {
    requireAutoChunking(ownStrategy, `files.${i}.chunking_strategy`);
    const file = nativeId(id);
    if (seen.has(file)) throw invalidField(files === undefined ? `file_ids.${i}` : `files.${i}`, 'is sent twice');
    seen.add(file);
    return { file, attributes: own ?? undefined };
  });
}
