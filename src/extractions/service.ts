import type { Static } from 'typebox';
import { deleteCrawl, listLeftOut } from '../crawls/store.ts';
import type { Db } from '../db/database.ts';
import { type FileRow, listFilesById } from '../files/store.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { announceChange } from '../http/streams/sse.ts';
import { AppError, found, invalidField } from '../lib/errors.ts';
import { type Caller, canSeeWholeApp } from '../tenancy/caller.ts';
import { requireQuotaLeft } from '../tenancy/quotas.ts';
import { fieldId, findAgent, findNamedOwners, pathId, requireCreateFor } from '../tenancy/references.ts';
import { mayChangeOwned, type Owned } from '../tenancy/visible.ts';
import { prepareCrawl } from './prepare-crawl.ts';
import { prepareDocument } from './prepare-document.ts';
import type { ExtractionDeps, PreparedExtraction } from './prepared.ts';
import { readExtractionRequest } from './request.ts';
import type { extractionCreateSchema } from './schema.ts';
import * as store from './store.ts';
import { pieceSchemaOf } from './structure/piece-schema.ts';
import { findRoom, type Wanted } from './structure/prompts.ts';
import { type DataRow, findSchema, listData } from './structure/store.ts';
import { schemaTooLarge } from './structure/structure-output.ts';
import { extractionTopic } from './topic.ts';

/** An extraction with its outputs and their files. */
export type ExtractionView = {
  row: store.ExtractionRow;
  outputs: store.OutputRow[];
  files: Map<string, FileRow>;
  /** The data of outputs, by output id. */
  data: Map<string, DataRow>;
  wanted: Wanted | undefined;
  /** Skipped pages of a site, with the reason. */
  leftOut: { url: string; reason: string }[];
};

type ListFilter = { kind?: string | undefined; state?: string | undefined; agent?: string | undefined };

const leftOutShownMax = 100;

export type ExtractionService = {
  /** Does the slow part of an extraction: for a document, reading it. Throws if that fails. */
  prepare(
    caller: Caller,
    body: Static<typeof extractionCreateSchema>,
    signal?: AbortSignal,
  ): Promise<PreparedExtraction>;
  /** Runs a document extraction. If it throws, it leaves nothing behind. */
  create(caller: Caller, body: Static<typeof extractionCreateSchema>): Promise<ExtractionView>;
  /** Reads in one snapshot, so that progress and outputs agree during a crawl. */
  get(caller: Caller, id: string): Promise<ExtractionView>;
  /** A page of the extractions visible to the caller, without their outputs. */
  list(caller: Caller, filter: ListFilter, page: PageRequest): Promise<[store.ExtractionRow[], number]>;
  /** Cancels and deletes the extraction. The files that it wrote are kept. */
  remove(caller: Caller, id: string): Promise<void>;
  /** The uuid of an extraction that the caller may see; 404 otherwise. */
  follow(caller: Caller, id: string): Promise<string>;
};

export function createExtractionService(deps: ExtractionDeps): ExtractionService {
  const { db } = deps;

  const prepare: ExtractionService['prepare'] = async (caller, body, signal) => {
    const request = readExtractionRequest(body);
    const owned = await resolveOwner(db, caller, body);
    if (request.wanted) await requireStructuring(deps, caller, request.wanted);
    return request.kind === 'document'
      ? prepareDocument(deps, caller, owned, request, signal)
      : prepareCrawl(deps, caller, owned, request);
  };

  return {
    prepare,

    async create(caller, body) {
      const prepared = await prepare(caller, body);
      try {
        // Read before the commit: the job may end before the response is sent, and the client expects to poll.
        return await db.begin(async (tx) => readView(tx, caller, await prepared.commit(tx)));
      } catch (error) {
        if (error instanceof AppError) await prepared.discard();
        throw error;
      }
    },

    async get(caller, id) {
      const uuid = pathId('extraction', id);
      return db.begin('isolation level repeatable read read only', (tx) => readView(tx, caller, uuid));
    },

    async list(caller, filter, page) {
      const { agent, ...rest } = filter;
      const agentId = fieldId('agent', 'agent', agent);
      return store.listExtractions(db, caller, { ...rest, agentId }, page);
    },

    async remove(caller, id) {
      const row = found(await store.findExtraction(db, caller, pathId('extraction', id)));
      await requireDelete(db, caller, row);
      await db.begin(async (tx) => {
        await deleteCrawl(tx, row.appId, row.id);
        await store.deleteExtraction(tx, row.appId, row.id);
        await announceChange(tx, extractionTopic, row.appId, row.id);
      });
    },

    async follow(caller, id) {
      const row = found(await store.findExtraction(db, caller, pathId('extraction', id)));
      return row.id;
    },
  };
}

async function readView(tx: Db, caller: Caller, id: string): Promise<ExtractionView> {
  const row = found(await store.findExtraction(tx, caller, id));
  const outputs = await store.listOutputs(tx, row.appId, row.id);
  const isStructured = row.dataPending !== null;
  const data = isStructured ? await listData(tx, row) : [];
  const wanted = isStructured ? await findSchema(tx, row) : undefined;
  const ids = [...outputs, ...data].flatMap(({ fileId }) => (fileId === null ? [] : [fileId]));
  const rows = ids.length > 0 ? await listFilesById(tx, row.appId, ids) : [];
  const leftOut = row.kind === 'site' ? await listLeftOut(tx, row.appId, row.id, leftOutShownMax) : [];
  const dataById = new Map(data.map((each) => [each.outputId, each]));
  return { row, outputs, files: new Map(rows.map((file) => [file.id, file])), data: dataById, wanted, leftOut };
}

/** 501 without a language model, 422 for a schema that cannot be used, 429 if the app's tokens are used up. */
async function requireStructuring(deps: ExtractionDeps, caller: Caller, wanted: Wanted): Promise<void> {
  await deps.llm.requireUsable(caller, wanted.model ?? undefined);
  await deps.schemas.requireUsable(caller.appId, wanted.schema);
  const own = wanted.model === null ? undefined : await deps.llm.contextTokens(caller, wanted.model);
  if (findRoom(wanted, pieceSchemaOf(wanted.schema).schema, own ?? deps.contextTokens) === undefined)
    throw invalidField('schema', schemaTooLarge);
  await requireQuotaLeft(deps.db, caller, 'tokens');
}

/** 403 unless the caller may delete resources of this extraction's owners. */
async function requireDelete(db: Db, caller: Caller, row: store.ExtractionRow): Promise<void> {
  if (canSeeWholeApp(caller)) return;
  const agent = row.agentId === null ? undefined : await findAgent(db, caller, row.agentId);
  if (!mayChangeOwned(caller, row, 'delete', agent))
    throw new AppError('forbidden', 'You may not delete this extraction.');
}

/** The owner: the agent, otherwise the calling user, otherwise the org named by a server, otherwise the app. */
async function resolveOwner(db: Db, caller: Caller, body: Static<typeof extractionCreateSchema>): Promise<Owned> {
  const named = await findNamedOwners(db, caller, { org: body.org, agent: body.agent });
  const none: Owned = { orgId: null, teamId: null, userId: null, agentId: null };
  if (named.agent) {
    if (named.org && named.org.id !== named.agent.orgId)
      throw invalidField('org', 'is not the organisation of the agent');
    requireCreateFor(caller, { ...none, agentId: named.agent.id }, named.agent);
    return { ...none, agentId: named.agent.id, orgId: named.agent.orgId };
  }
  const own = caller.kind === 'user' || caller.kind === 'agent' ? (caller.orgId ?? null) : null;
  const orgId = named.org?.id ?? own;
  if (caller.kind === 'user') return { ...none, userId: caller.userId, orgId };
  if (caller.kind === 'agent') return { ...none, agentId: caller.agentId, orgId };
  return { ...none, orgId };
}
