import type { Static } from 'typebox';
import type { Comparison } from '../../content/compare-lines.ts';
import type { ParserPool } from '../../content/parse/pool/pool.ts';
import { ParseError } from '../../content/parse/types.ts';
import type { PageRequest } from '../../http/route/pages.ts';
import { AppError, found, invalidField } from '../../lib/errors.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { type DocumentContent, sliceText } from '../documents/slices.ts';
import { findVisibleText } from '../documents/store.ts';
import type { documentContentQuery } from '../schema.ts';
import { findVersioned } from './find.ts';
import { createRestoreOrders, type OrderDeps } from './order.ts';
import * as store from './store.ts';

/** Earlier versions of documents. Those who may read a document now may read its versions, and nobody else. */
export function createVersionService(deps: OrderDeps & { parser: ParserPool }) {
  const { db, clock, parser, sources } = deps;

  async function get(caller: Caller, text: string, number: number): Promise<store.VersionRow> {
    const { id } = await findVersioned(deps, caller, text);
    return found(await store.findVersion(db, caller.appId, id, number, clock.now()));
  }

  /** The version's text. It may have been deleted since the version was found. */
  async function readText(caller: Caller, version: store.VersionRow): Promise<Buffer> {
    return found(await store.readVersionText(db, caller.appId, version));
  }

  return {
    ...createRestoreOrders(deps),

    async list(caller: Caller, text: string, page: PageRequest): Promise<[store.VersionRow[], number]> {
      const { id } = await findVersioned(deps, caller, text);
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
      const all = await readText(caller, version);
      const read = {
        all: async () => all,
        part: async (start: number, length: number) => all.subarray(start, start + length),
      };
      const { totalLines } = version;
      return { version, ...(await sliceText(read, { totalSize: all.length, totalLines }, query)) };
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
      return { base, version, text: await compareTexts(parser, caller.appId, before, after) };
    },

    /** The last versions of deleted documents, for those who may change the source. */
    async listDeleted(caller: Caller, text: string, page: PageRequest): Promise<[store.VersionRow[], number]> {
      const source = await sources.getForChange(db, caller, text, 'update');
      return store.listDeleted(db, caller, source.id, clock.now(), page);
    },

    /** The text of a version, by the UUID of its document; undefined if it is not visible or has more bytes. */
    async findText(caller: Caller, id: string, number: number, bytesMax: number) {
      const current = await findVisibleText(db, caller, id, bytesMax);
      if (current?.version === number) return current;
      return store.findVisibleVersionText(db, caller, { id, number }, bytesMax, clock.now());
    },
  };
}

async function compareTexts(parser: ParserPool, lane: string, before: Buffer, after: Buffer): Promise<Comparison> {
  try {
    const input = { bytes: Buffer.concat([before, after]), split: before.length };
    return await parser.run<Comparison>('compare', input, { lane });
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    throw new AppError('timeout', 'Comparing these versions takes too long.', { cause: error });
  }
}
