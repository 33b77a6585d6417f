import { codeHeaderBytes } from '../../content/learn/codes.ts';
import { LearningProcess } from '../../content/learn/process.ts';
import type { Database, Db, Transaction } from '../../db/database.ts';
import { Slots } from '../../fairness/slots.ts';
import { keepLease } from '../../jobs/lease.ts';
import { newUuid } from '../../lib/ids.ts';
import type { Logger } from '../../lib/log.ts';
import { quotaError } from '../../tenancy/quotas.ts';
import { lockIndex, type SourceKey } from '../index/store.ts';
import * as store from './store.ts';

type LearnDeps = {
  db: Database;
  log: Logger;
  /** Memory of one learning process in MiB; 0 learns nothing. */
  learnMemoryMb: number;
};

/** A smaller source says too little about its words. */
const chunksMin = 256;
/** A model is trained again once the source has this many new chunks, as a fraction of those it was trained for. */
const growth = 0.5;
/** The same while a source is being filled: training three times up to 10,000 chunks instead of ten. */
const activeGrowth = 3;
/** A fast fill ends before this, and its model is then trained once on all that was written. */
const ageSeconds = 60;
/**
 * The same once nothing has been written into the source for ten minutes, at most once an hour: its model was trained on
 * a part of it.
 */
const quiet = { growth: 0.1, seconds: 600, ageSeconds: 3_600 };
const due = { chunksMin, growth, activeGrowth, ageSeconds, quiet };
/** Larger sources are learned from a sample, and then all their chunks are folded in. */
const sampleChunksMax = 65_536;
const sampleWordsMax = 20_000_000;
const dimensionsMax = 64;
const dimensionsStep = 16;
const leaseSeconds = 30;
const heartbeatMs = 5_000;
/** How long a source waits after a failure, such as too little memory. */
const pauseSeconds = 3_600;
/** Chunks folded in at a time. Each takes half a kilobyte in the learning process. */
const foldedChunksMax = 262_144;
/** At most this many new chunks are folded in while the index is locked. */
const lockedChunksMax = 512;
const chunksPerRow = 4_096;
const wordsPerInsert = 4_000;

/**
 * This process learns two sources of different apps at a time. Each has its own child process, and holds a connection
 * while it reads its postings.
 */
const slots = new Slots({ slots: 2, tooMany: () => new Error('Too many sources wait to be learned.') });

/** Trains the models of an app's sources that are due, one after another. */
export async function learnSources(deps: LearnDeps, appId: string, signal: AbortSignal | undefined): Promise<void> {
  if (deps.learnMemoryMb === 0) return;
  const listDue = () => store.listDue(deps.db, { ...due, count: 100, appId });
  for (const key of await listDue()) {
    if (signal?.aborted) return;
    const learn = async () => {
      // Another job of the app may have learned it meanwhile.
      if ((await listDue()).some(({ sourceId }) => sourceId === key.sourceId)) await learnSource(deps, key, signal);
    };
    await slots.run(appId, learn, signal);
  }
}

/** The apps that have a source whose model is due. */
export async function listAppsToLearn({ db, learnMemoryMb }: LearnDeps): Promise<string[]> {
  if (learnMemoryMb === 0) return [];
  const sources = await store.listDue(db, { ...due, count: 1_000, appId: undefined });
  return [...new Set(sources.map((key) => key.appId))];
}

async function learnSource(deps: LearnDeps, key: SourceKey, signal: AbortSignal | undefined): Promise<void> {
  const { db, log } = deps;
  const holder = newUuid();
  const version = await store.claimModel(db, key, holder, leaseSeconds);
  if (version === undefined) return;
  const lease = keepLease({
    ...{ everyMs: heartbeatMs, signal },
    renew: () => store.renewClaim(db, key, holder, leaseSeconds),
    onError: (error) => log.warn({ err: error, source: key.sourceId }, 'A claim was not renewed'),
  });
  const stop = lease.signal;
  const learner = new LearningProcess(deps.learnMemoryMb, stop);
  try {
    // Rows that an interrupted training has left.
    await store.deleteOtherVersions(db, key, version);
    await trainModel(db, key, holder, version + 1, learner);
    await store.deleteOtherVersions(db, key, (await store.readVersion(db, key)) ?? 0);
    await store.releaseClaim(db, key, holder, 0);
  } catch (error) {
    if (error instanceof OverQuota) {
      await store.deleteOtherVersions(db, key, version);
      await store.refuseModel(db, key, holder, error.bytes);
      return;
    }
    await store.releaseClaim(db, key, holder, stop.aborted ? 0 : pauseSeconds);
    if (!stop.aborted) log.warn({ err: error, source: key.sourceId }, 'No model was learned from a source');
  } finally {
    lease.end();
    await learner.close();
  }
}

/**
 * Trains a version on a sample, folds in every chunk, and makes it the source's model once it is complete. Ingestion
 * and search continue meanwhile.
 */
async function trainModel(
  db: Database,
  key: SourceKey,
  holder: string,
  version: number,
  learner: LearningProcess,
): Promise<void> {
  const trained = await db.begin('isolation level repeatable read read only', async (tx) => {
    const facts = await store.readIndexFacts(tx, key);
    if (!facts || facts.chunkCount < chunksMin) return undefined;
    const { languages, firstOrdinal, nextOrdinal, chunkCount, openAdded } = facts;
    const dimensions = Math.min(dimensionsMax, Math.floor(chunkCount / chunksMin) * dimensionsStep);
    const taken = takeSample(facts, await store.listHiddenRanges(tx, key));
    const sample = { languages, dimensions, firstOrdinal, taken };
    await learner.read(sample, store.readRange(tx, key, firstOrdinal, nextOrdinal));
    return { dimensions, chunkCount, nextOrdinal, firstOrdinal, openAdded };
  });
  if (!trained) return;
  const { dimensions, chunkCount, nextOrdinal, firstOrdinal, openAdded } = trained;
  const words = await learner.train();
  const size = codeHeaderBytes + dimensions;
  // Leaves out the words themselves, which count at the end. A model that is clearly too large is not stored.
  const bytesMin = words * (4 + size) + chunkCount * size;
  if (!(await store.modelFits(db, key, bytesMin))) throw new OverQuota(bytesMin);
  for (let from = 0; from < words; from += wordsPerInsert) {
    const { terms, frequencies, vectors } = await learner.readWords(from, wordsPerInsert);
    const rows = terms.map((term, i) => ({
      term,
      frequency: frequencies[i] ?? 0,
      vector: vectors.subarray(i * size, (i + 1) * size),
    }));
    await store.insertWords(db, key, version, rows);
  }

  const fold = (tx: Transaction, from: number, to: number) =>
    learner.fold(from, to, store.readRange(tx, key, from, to));
  /** Stores the codes of the chunks from one ordinal to before another. */
  const write = async (writer: Db, from: number, to: number, codes: Buffer) => {
    for (let done = 0; done < to - from; done += chunksPerRow) {
      const count = Math.min(chunksPerRow, to - from - done);
      const content = codes.subarray(done * size, (done + count) * size);
      const row = { firstOrdinal: from + done, chunkCount: count, codeVersion: 1, content };
      await store.insertCodes(writer, key, version, row);
    }
  };
  // Ingestion continues, and adds fewer chunks during each pass.
  let folded = firstOrdinal;
  for (let left = Number.POSITIVE_INFINITY; left > lockedChunksMax; ) {
    const from = folded;
    const read = await db.begin('isolation level repeatable read read only', async (tx) => {
      const end = (await store.readIndexFacts(tx, key))?.nextOrdinal ?? from;
      const to = Math.min(end, from + foldedChunksMax);
      return { to, left: end - to, codes: to > from ? await fold(tx, from, to) : undefined };
    });
    // After the transaction, because a holder of one connection must never wait for another.
    if (read.codes !== undefined) await write(db, from, read.to, read.codes);
    folded = read.to;
    left = read.left;
  }
  await db.begin(async (tx) => {
    const state = await lockIndex(tx, key);
    if (!state) return;
    const { nextOrdinal: end } = state;
    if (end > folded) await write(tx, folded, end, await fold(tx, folded, end));
    const bytes = await store.measureVersion(tx, key, version);
    const model = { version, dimensions, words, chunkCount, nextOrdinal, openAdded, bytes };
    const installed = await store.installModel(tx, key, holder, model).catch((error: unknown) => {
      throw quotaError(error) === undefined ? error : new OverQuota(bytes);
    });
    if (!installed) throw new ClaimLost();
  });
}

/** A model of this size exceeds the quota of its app. */
class OverQuota extends Error {
  readonly bytes: number;

  constructor(bytes: number) {
    super('The model is over the quota of bytes.');
    this.bytes = bytes;
  }
}

/** Another process has taken over the training. */
class ClaimLost extends Error {}

/** One byte per ordinal: 1 for the chunks to train on, spread evenly over those that are not hidden. */
function takeSample(
  { firstOrdinal, nextOrdinal, chunkCount, wordCount }: store.IndexFacts,
  hidden: { firstOrdinal: number; chunkCount: number }[],
): Uint8Array {
  const wordsPerChunk = Math.max(1, wordCount / Math.max(1, chunkCount));
  const share = Math.min(1, sampleChunksMax / chunkCount, sampleWordsMax / wordsPerChunk / chunkCount);
  const taken = new Uint8Array(nextOrdinal - firstOrdinal).fill(1);
  for (const range of hidden) {
    const from = Math.max(0, range.firstOrdinal - firstOrdinal);
    taken.fill(0, from, Math.max(from, range.firstOrdinal - firstOrdinal + range.chunkCount));
  }
  let place = 0;
  for (let i = 0; i < taken.length; i++) {
    if (taken[i] === 0) continue;
    taken[i] = Math.floor((place + 1) * share) > Math.floor(place * share) ? 1 : 0;
    place += 1;
  }
  return taken;
}
