import { hash } from 'node:crypto';
import type { Transaction } from '../../db/database.ts';
import { storableText } from '../../lib/storable-text.ts';
import { usePages } from '../../tenancy/quotas.ts';
import { groupWrites, removeDocument } from '../index/indexing.ts';
import type { SourceKey } from '../index/store.ts';
import type { SourceRow } from '../sources/store.ts';
import * as store from './listing-store.ts';
import { DocumentDeleted, describeFailure, type Input, type PreparedInput, withNewId } from './prepare.ts';
import { startReading, writtenMax } from './read-ahead.ts';
import type { IngestionRun } from './run.ts';
import { addError } from './stats.ts';
import { listPullRemovals } from './store.ts';

/** What a listing says about a document. It is read only if its version has changed. */
type ListedEntry = {
  /** Unique in the source. From `listedName`, like the version. */
  id: string;
  version: string;
  url: string | null;
  title: string | null;
  metadata: Record<string, string>;
  /** Undefined if it disappeared since it was listed. Throws ParseError or FetchError. */
  read(): Promise<ReadEntry | undefined>;
};

type ReadEntry = Pick<Input, 'bytes' | 'isText' | 'filename' | 'contentType'>;

const deletionsPerTransaction = 20;
/** No more entries are fetched before these bytes are written. */
const togetherBytesMax = 1024 * 1024;

const nameCharactersMax = 500;

/** What another system names a document, as it can be stored and indexed: a long name by its digest. */
export function listedName(text: string): string {
  return text.length > nameCharactersMax ? `sha256:${hash('sha256', text)}` : storableText(text);
}

/** An entry whose bytes have been fetched. */
type EntryReading = { entry: ListedEntry; bytes: number; work: Promise<PreparedInput> };
type EntryWrite = PreparedInput & { entry: ListedEntry };

/**
 * A pull of a source whose documents are entries of a listing. Safe to repeat: what was already read has its new
 * version. Deletes nothing unless `deleteUnlisted` is called, which a listing that failed never reaches.
 */
export class ListingPull {
  readonly #run: IngestionRun;
  readonly #source: SourceRow;
  readonly #key: SourceKey;
  #listed = 0;

  constructor(run: IngestionRun, source: SourceRow) {
    this.#run = run;
    this.#source = source;
    this.#key = { appId: source.appId, sourceId: source.id };
  }

  /** Which of these entries must be read; the others are marked as still present. */
  async findChanged<Entry extends { id: string; version: string }>(entries: Entry[]): Promise<Entry[]> {
    this.#listed += entries.length;
    const versions = await store.listVersions(
      this.#run.deps.db,
      this.#key,
      entries.map(({ id }) => id),
    );
    const same = entries.filter(({ id, version }) => versions.get(id) === version);
    this.#run.stats.unchanged += same.length;
    await this.keep(same.map(({ id }) => id));
    return entries.filter(({ id, version }) => versions.get(id) !== version);
  }

  /** Marks documents as still present. */
  async keep(ids: string[]): Promise<void> {
    if (ids.length > 0) await this.#run.commit((tx) => store.markSeen(tx, this.#key, ids, this.#run.id));
  }

  /**
   * Reads entries one after another and writes them in their order, those that are small together. One that cannot be
   * read keeps its last text.
   */
  async write(entries: Iterable<ListedEntry>): Promise<void> {
    let reading: EntryReading[] = [];
    let bytes = 0;
    const flush = async () => {
      const ready = await this.#takeRead(reading);
      for (const group of groupWrites(ready)) await this.#writeGroup(group);
      reading = [];
      bytes = 0;
    };
    for (const entry of entries) {
      this.#run.signal.throwIfAborted();
      // The second finds the document of the first only after its commit.
      if (reading.some((one) => one.entry.id === entry.id)) await flush();
      const one = await this.#startReading(entry);
      if (one === undefined) continue;
      reading.push(one);
      bytes += one.bytes;
      if (reading.length >= writtenMax || bytes > togetherBytesMax) await flush();
    }
    await flush();
  }

  /** Undefined if the entry has disappeared or cannot be read. */
  async #startReading(entry: ListedEntry): Promise<EntryReading | undefined> {
    const old = await store.findByExternalId(this.#run.deps.db, this.#key, entry.id);
    try {
      const read = await entry.read();
      if (read === undefined) return undefined;
      const { title, url: sourceUrl } = entry;
      const metadata = Object.fromEntries(
        Object.entries(entry.metadata).map(([name, value]) => [name, storableText(value)]),
      );
      const input = { ...read, title, metadata, sourceUrl, documentId: old ?? null, fileId: null };
      const { work } = startReading(entry, () => this.#run.prepare(this.#source, input));
      return { entry, bytes: read.bytes.length, work };
    } catch (error) {
      await this.#fail(entry, error);
      return undefined;
    }
  }

  async #takeRead(reading: readonly EntryReading[]): Promise<EntryWrite[]> {
    const ready: EntryWrite[] = [];
    for (const { entry, work } of reading)
      try {
        ready.push({ ...withNewId(await work), entry });
      } catch (error) {
        await this.#fail(entry, error);
      }
    return ready;
  }

  /** Writes entries together, or each alone if one of them fails. */
  async #writeGroup(group: readonly EntryWrite[]): Promise<void> {
    try {
      await this.#writeTogether(group);
    } catch (error) {
      const [first, ...others] = group;
      if (first && others.length === 0) return this.#fail(first.entry, error);
      if (!describeFailure(error)) throw error;
      for (const one of group) await this.#writeGroup([one]);
    }
  }

  async #writeTogether(group: readonly EntryWrite[]): Promise<void> {
    const { appId } = this.#key;
    await this.#run.write(this.#source, group, async (tx) => {
      const ids = group.map(({ entry }) => entry.id);
      // A document that a person deletes during a pull stays deleted until the next one.
      if ((await listPullRemovals(tx, appId, this.#run.id, ids)).size > 0) throw new DocumentDeleted();
      await usePages(tx, this.#source, group.length);
      await Promise.all(group.map(({ entry, facts }) => store.setListed(tx, appId, facts.id, entry, this.#run.id)));
    });
  }

  async #fail(entry: ListedEntry, error: unknown): Promise<void> {
    const failure = describeFailure(error) ?? this.#run.describeRead(error);
    if (!failure) throw error;
    addError(this.#run.stats, { url: entry.url ?? entry.id, ...failure });
    await this.keep([entry.id]);
  }

  /** Deletes these documents, which are known to be gone. */
  async delete(ids: string[]): Promise<void> {
    for (const id of ids)
      await this.#run.commit(async (tx) => {
        const document = await store.findByExternalId(tx, this.#key, id);
        if (document !== undefined && (await removeDocument(tx, this.#key, document))) this.#run.stats.removed += 1;
      });
  }

  /**
   * Deletes the documents that the whole listing did not contain. If it was empty, or if they are more than half of what
   * there was, they wait for a person: the next pull that may delete them does.
   */
  async deleteUnlisted(): Promise<void> {
    const { unlisted, before } = await store.countUnlisted(this.#run.deps.db, this.#key, this.#run.id);
    const isAlarming = unlisted > 0 && (this.#listed === 0 || unlisted * 2 > before);
    if (isAlarming && !this.#run.mayDelete) {
      const held = { documents: unlisted, of: before, since: this.#run.deps.clock.now().toISOString() };
      await this.#run.commit((tx) => store.holdDeletions(tx, this.#key, held));
      this.#run.note({ deletions_held: unlisted });
      return;
    }
    while (await this.#run.commit((tx) => this.#deleteSome(tx)));
    await this.#run.commit((tx) => store.holdDeletions(tx, this.#key, null));
  }

  async #deleteSome(tx: Transaction): Promise<boolean> {
    const ids = await store.listUnlisted(tx, this.#key, this.#run.id, deletionsPerTransaction);
    for (const id of ids) if (await removeDocument(tx, this.#key, id)) this.#run.stats.removed += 1;
    return ids.length > 0;
  }
}
