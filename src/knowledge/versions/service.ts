import type { Static } from 'typebox';
import type { Comparison } from '../../content/compare-lines.ts';
import type { ParserPool } from '../../content/parse/pool/pool.ts';
import { ParseError } from '../../content/parse/types.ts';
import type { Database } from '../../db/database.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import { readTime } from '../../http/route/times.ts';
import type { Clock } from '../../lib/clock.ts';
import { AppError, found, invalidField, notFound } from '../../lib/errors.ts';
import { formatId } from '../../lib/ids.ts';
import { type Caller, canSeeWholeApp } from '../../tenancy/caller.ts';
import { pathId } from '../../tenancy/references.ts';
import { bytesDefault, type DocumentContent, linesDefault } from '../documents/service.ts';
import { cutBytes, cutLines } from '../documents/slices.ts';
import * as documents from '../documents/store.ts';
import type { IngestService } from '../ingestion/service.ts';
import type { IngestionView } from '../ingestion/store.ts';
import type { documentContentQuery } from '../schema.ts';
import type { SourceService, VisibleSource } from '../sources/service.ts';
import type { RestoreOrder } from './restore.ts';
import type { restoreSchema } from './schema.ts';
import * as store from './store.ts';

type VersionDeps = {
  db: Database;
  clock: Clock;
  parser: ParserPool;
  sources: SourceService;
  ingestions: IngestService;
};

const dayMs = 24 * 3_600_000;
/** As many lists of grants as the readers of an ingestion may need. */
const aclsMax = 100;

/** What documents were. Who may read a document now may read what it was, and nobody else. */
export function createVersionService({ db, clock, parser, sources, ingestions }: VersionDeps) {
  /** The document, if the caller may read it. A deleted one is for those who may change its source. */
  async function find(caller: Caller, text: string): Promise<{ id: string; sourceId: string }> {
    const id = pathId('document', text);
    const live = await documents.findDocument(db, caller, id);
    if (live) return { id, sourceId: live.sourceId };
    const sourceId = found(await store.findSourceOfDeleted(db, caller, id, clock.now()));
    if (!(await sources.findForChange(db, caller, formatId('source', sourceId)))) throw notFound();
    return { id, sourceId };
  }

  async function get(caller: Caller, text: string, number: number): Promise<store.VersionRow> {
    const { id } = await find(caller, text);
    return found(await store.findVersion(db, caller.appId, id, number, clock.now()));
  }

  /** The version's text. It may have been deleted since the version was found. */
  async function readText(caller: Caller, version: store.VersionRow): Promise<Buffer> {
    return found(await store.readVersionText(db, caller.appId, version));
  }

  function readPast(source: VisibleSource, text: string): Date {
    const at = found(readTime('at', text));
    const now = clock.now();
    const { versionRetentionDays: days, versionsFrom: from } = source;
    if (days === null || from === null) throw invalidField('at', 'the source keeps no versions');
    if (at > now) throw invalidField('at', 'is in the future');
    const since = new Date(Math.max(from.getTime(), now.getTime() - days * dayMs));
    if (at < since)
      throw invalidField('at', `is before ${since.toISOString()}, the first time of which versions are kept`);
    return at;
  }

  /** What a restore would change among the documents that the caller sees. What is hidden stays as it is. */
  async function plan(caller: Caller, text: string, at: string) {
    const source = await sources.getForChange(db, caller, text, 'update');
    const key = { appId: source.appId, sourceId: source.id };
    const acls = canSeeWholeApp(caller) ? undefined : await store.listAdmitted(db, caller, key, aclsMax + 1);
    if (acls !== undefined && acls.length > aclsMax)
      throw new AppError('conflict', `You see documents with more than ${aclsMax} lists of grants. Use a secret key.`);
    const restore = { ...key, at: readPast(source, at), until: latest, acls };
    const counts = await store.countRestoreSteps(db, restore);
    return { source, acls, plan: { at: restore.at.toISOString(), ...counts } };
  }

  return {
    async list(caller: Caller, text: string, page: PageRequest): Promise<[store.VersionRow[], number]> {
      const { id } = await find(caller, text);
      return store.listVersions(db, caller.appId, id, clock.now(), page);
    },

    /** Returns the whole text, or a slice of it if `offset` or `limit` is given. */
    async read(
      caller: Caller,
      text: string,
      number: number,
      query: Static<typeof documentContentQuery>,
    ): Promise<DocumentContent & { version: store.VersionRow }> {
      const version = await get(caller, text, number);
      return { version, ...cut(await readText(caller, version), version.totalLines, query) };
    },

    /** Compares a version with an earlier one, or with any. */
    async compare(caller: Caller, text: string, number: number, baseNumber: number | undefined) {
      const version = await get(caller, text, number);
      const { documentId } = version;
      const other = baseNumber ?? (await store.findNumberBefore(db, caller.appId, documentId, number, clock.now()));
      if (other === undefined) throw invalidField('base', 'there is no version before this one');
      const base = await store.findVersion(db, caller.appId, documentId, other, clock.now());
      if (base === undefined) throw invalidField('base', 'is not a version of the document');
      const [before, after] = [await readText(caller, base), await readText(caller, version)];
      try {
        const bytes = Buffer.concat([before, after]);
        const input = { bytes, split: before.length };
        return { base, version, text: await parser.run<Comparison>('compare', input, { lane: caller.appId }) };
      } catch (error) {
        if (!(error instanceof ParseError)) throw error;
        throw new AppError('timeout', 'Comparing these versions takes too long.', { cause: error });
      }
    },

    /** Starts to make a version the newest one. A document that was deleted comes back. */
    async restore(caller: Caller, text: string, number: number): Promise<IngestionView> {
      const { id, sourceId } = await find(caller, text);
      const source = await sources.getForChange(db, caller, formatId('source', sourceId), 'update');
      const version = found(await store.findVersion(db, caller.appId, id, number, clock.now()));
      if (version.endedAt === null) throw new AppError('conflict', 'This is the current version.');
      const order: RestoreOrder = { document: id, restored_version: number };
      return ingestions.restore(caller, source, order);
    },

    /** The last versions of deleted documents, for those who may change the source. */
    async listDeleted(caller: Caller, text: string, page: PageRequest): Promise<[store.VersionRow[], number]> {
      const source = await sources.getForChange(db, caller, text, 'update');
      return store.listDeleted(db, caller, source.id, clock.now(), page);
    },

    plan: async (caller: Caller, text: string, at: string) => (await plan(caller, text, at)).plan,

    /** Starts to bring a source back to a time. Deleting most of it must be confirmed. */
    async restoreSource(caller: Caller, text: string, input: Static<typeof restoreSchema>): Promise<IngestionView> {
      const { source, acls, plan: planned } = await plan(caller, text, input.at);
      const { documents: all, deleted } = planned;
      if (deleted * 2 > all && input.confirm_deletions !== true)
        throw new AppError(
          'conflict',
          `This deletes ${deleted} of ${all} documents. Confirm it with confirm_deletions.`,
          {
            details: { deleted, documents: all },
          },
        );
      const order: RestoreOrder = { restored_to: planned.at, ...(acls && { acls }) };
      return ingestions.restore(caller, source, order);
    },

    /** The text of a version, by the UUID of its document; undefined if it is not visible or has more bytes. */
    async findText(caller: Caller, id: string, number: number, bytesMax: number) {
      const current = await documents.findVisibleText(db, caller, id, bytesMax);
      if (current?.version === number) return current;
      return store.findVisibleVersionText(db, caller, { id, number }, bytesMax, clock.now());
    },
  };
}

/** Later than every change. */
const latest = new Date('9999-12-31T00:00:00Z');

function cut(text: Buffer, totalLines: number, query: Static<typeof documentContentQuery>): DocumentContent {
  if (query.offset === undefined && query.limit === undefined) return { content: text.toString() };
  const { unit = 'lines' } = query;
  if (unit === 'bytes') {
    const { offset = 0, limit = bytesDefault } = query;
    const start = Math.min(offset, text.length);
    return { unit, offset, limit, ...cutBytes(text, 0, start, Math.min(start + limit, text.length)) };
  }
  const { offset = 1, limit = linesDefault } = query;
  if (offset < 1) throw invalidField('offset', 'lines are numbered from 1');
  return { unit, offset, limit, ...cutLines(text.toString(), totalLines, offset, limit) };
}
