import { Batcher } from '../db/batcher.ts';
import { type Db, isRefusedStatement } from '../db/database.ts';
import type { Scope } from '../tenancy/caller.ts';
import {
  findEntries,
  incrementEntries,
  type KvContent,
  type KvEntry,
  type KvIncrement,
  type KvOwner,
  type KvPage,
  type KvWrite,
  listPages,
  upsertEntries,
} from './store.ts';

type SharedStatements = ReturnType<typeof createBatchers>;

const batchers = new WeakMap<Db, SharedStatements>();

/** Concurrent operations on one `db` share statements. */
export function sharedStatements(db: Db): SharedStatements {
  const known = batchers.get(db);
  if (known !== undefined) return known;
  const created = createBatchers(db);
  batchers.set(db, created);
  return created;
}

const batchItemsMax = 64;
const batchBytesMax = 1024 * 1024;
/** What an entry counts beside its value, so that a statement writes a bounded number of entries. */
const entryBytes = 512;
const readBatchesMax = 2;
/** Rows that a shared statement reads for pages: a small page does not wait for several large ones. */
const pageRowsMax = 1_000;
const writeBatchesMax = 4;

/** The key of a scope's batches. */
export function nameOf({ appId, sandboxId }: Scope): string {
  return `${appId}/${sandboxId}`;
}

/** All entries of a batch belong to one scope. */
function scopeOf(items: KvOwner[]): Scope {
  const [first] = items;
  if (first === undefined) throw new Error('The batch is empty.');
  return first;
}
const sharedLockTimeoutMs = 50;

function createBatchers(db: Db) {
  const reads = new Batcher<KvOwner & { key: string }, KvEntry | undefined>({
    run: (wanted) => findEntries(db, scopeOf(wanted), wanted),
    itemsMax: batchItemsMax,
    bytesMax: Number.POSITIVE_INFINITY,
    batchesMax: readBatchesMax,
  });
  const pages = new Batcher<KvPage, KvContent[] | undefined>({
    run: (wanted) => listPages(db, scopeOf(wanted), wanted),
    itemsMax: batchItemsMax,
    bytesMax: pageRowsMax,
    sizeOf: ({ rowsMax }) => rowsMax,
    batchesMax: readBatchesMax,
    prefersReplica: true,
  });
  // If an entry is locked, the batcher writes each request's entries separately.
  const lockTimeoutMs = (items: unknown[]) => (items.length > 1 ? sharedLockTimeoutMs : 0);
  const shared = { itemsMax: batchItemsMax, batchesMax: writeBatchesMax, failsForOne: isRefusedStatement };
  /** The entries of each request are written together, or none of them. */
  const writes = new Batcher<(KvOwner & KvWrite)[], (KvEntry | undefined)[]>({
    ...shared,
    async run(requests) {
      const written = requests.flat();
      const entries = await upsertEntries(db, scopeOf(written), written, lockTimeoutMs(requests));
      return requests.map(({ length }) => entries.splice(0, length));
    },
    bytesMax: batchBytesMax,
    sizeOf: (request) => request.reduce((sum, { value }) => sum + value.length + entryBytes, 0),
    namesOf: (request) => request.map(({ userId, key }) => userId + key),
  });
  const increments = new Batcher<KvOwner & KvIncrement, KvEntry | undefined>({
    ...shared,
    run: (items) => incrementEntries(db, scopeOf(items), items, lockTimeoutMs(items)),
    bytesMax: Number.POSITIVE_INFINITY,
    namesOf: ({ userId, key }) => [userId + key],
  });
  return { reads, pages, writes, increments };
}
