import type { BlobStore } from '../blob/blob-store.ts';
import type { SharedEmbedder } from '../content/embed/in-lanes.ts';
import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { Reranker } from '../content/models/reranker.ts';
import type { ParserPool } from '../content/parse/pool/pool.ts';
import type { StemLanguage } from '../content/terms.ts';
import type { CrawlSink } from '../crawls/types.ts';
import type { Database } from '../db/database.ts';
import type { Domain, Tasks } from '../domain.ts';
import { addJob } from '../jobs/queue.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { JobContext, Recurring } from '../jobs/workers.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import type { ObservedSearch } from '../monitoring/traffic.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { createAttachmentService } from './attached-files/service.ts';
import type { ComputingThreads } from './computing/threads.ts';
import { createBoxes } from './documents/boxes.ts';
import { createErasedDocuments } from './documents/erase.ts';
import { createDocumentService } from './documents/service.ts';
import type { OpenEmbedder } from './embedding/embedders.ts';
import { createEmbeddingJobs } from './embedding/jobs.ts';
import { createEmbeddingService } from './embedding/service.ts';
import type { OpenCache } from './index/cache.ts';
import { compactSource } from './index/compact.ts';
import { mergeSegments, type SourceKey } from './index/store.ts';
import { knowledgeConsumer } from './ingestion/crawl-sink.ts';
import { type EmbeddingOrder, queueLearning } from './ingestion/deps.ts';
import { createIngestService } from './ingestion/service.ts';
import { ingestionStream, ingestionTopic } from './ingestion/stream.ts';
import { createKnowledgeWork, leaseSeconds } from './ingestion/workflow.ts';
import { learnSources, listAppsToLearn } from './learning/train.ts';
import { createPermissions } from './permissions/service.ts';
import type { OpenReranker } from './search/rerank.ts';
import { openSearchIndex } from './search/search.ts';
import { createSearchService } from './search/service.ts';
import { createInboundService } from './sources/inbound.ts';
import { startDuePulls } from './sources/schedule.ts';
import { createSourceService } from './sources/service.ts';
import { sweepKnowledge } from './sweep.ts';
import { applySyncs } from './syncs/apply.ts';
import { createSyncService } from './syncs/service.ts';
import { createVersionService } from './versions/service.ts';
import { sweepVersions } from './versions/sweep.ts';

/*
 * Sources hold documents, which search finds.
 * - sources/: creating and changing sources, inbound URLs and messages. kinds/: what each kind accepts.
 * - syncs/: what connectors send, in batches that are stored first and then indexed.
 * - ingestion/: one import of content: `push.ts` checks what is pushed, `start.ts` begins it. Small content is read while
 *   the request waits, pulls run as jobs, and sites come from crawls.
 * - documents/: reading and changing single documents; attached-files/: files of vector stores.
 * - versions/: earlier versions of documents, kept by triggers in the transaction of the change, restored by ingestions.
 * - index/: chunks, words and vectors of each source, written in the transaction of its document, then merged by jobs.
 * - learning/: what a source teaches the built-in embedder.
 * - search/: candidates by words and vectors, fused and reranked.
 * An import flows from a source's ingestion to documents, chunks and the index; a search reads only the index and texts.
 */

type KnowledgeDeps = {
  db: Database;
  blobs: BlobStore;
  parser: ParserPool;
  secrets: Secrets;
  clock: Clock;
  log: Logger;
  baseUrl: () => string;
  embedder: SharedEmbedder;
  /** Opens a model of the registry as an embedder. */
  openEmbedder: OpenEmbedder;
  /** Opens a model of the registry as a reranker. */
  openReranker: OpenReranker;
  /** Language of the words in sources that do not name one. */
  language: StemLanguage;
  fetcher: Fetcher;
  /** For what pulls keep while they run. */
  scratchDirectory: string;
  /** Where add-ons are. */
  dataDir: string;
  /** Where search caches the index. */
  openCache: OpenCache;
  threads: ComputingThreads;
  /** Time that a search waits for its query's vector, in milliseconds. */
  queryEmbeddingMs: number;
  reranker: Reranker | undefined;
  rerankPassages: number;
  /** Counts a search. */
  observeSearch: (search: ObservedSearch) => void;
  bodyBytesMax: number;
  /** Memory of a process that learns from a source, in MiB; 0 learns nothing. */
  learnMemoryMb: number;
};

const recurring: Recurring[] = [
  { task: taskNames.embedDocuments, everySeconds: 30 },
  { task: taskNames.learnSources, everySeconds: 60 },
  { task: taskNames.purgeSources, everySeconds: 60 },
  { task: taskNames.startPulls, everySeconds: 15 },
  { task: taskNames.sweepVersions, everySeconds: 600 },
];

export type Knowledge = ReturnType<typeof createKnowledge>['service'];

/** Sources, ingestion, documents and search. */
export function createKnowledge(deps: KnowledgeDeps) {
  const { db, clock, log, embedder, fetcher } = deps;
  const checkUrl = (url: string) => {
    const checked = fetcher.check(url);
    return checked.ok ? undefined : checked.problem;
  };
  const embedders = { base: embedder, open: deps.openEmbedder };
  const work = createKnowledgeWork({ ...deps, embedders });
  const embeddingJobs = createEmbeddingJobs({ ...deps, embedders });
  const embedding = createEmbeddingService({ db, clock, ...embedders });
  const sources = createSourceService({ db, clock, secrets: deps.secrets, checkUrl, embedding });
  const onError = (error: unknown) => log.error({ err: error }, 'An ingestion was interrupted and will be resumed');
  const permissions = createPermissions({ db, sources });
  const ingestions = createIngestService({ db, sources, permissions, work, onError });
  const index = openSearchIndex(db, { ...deps, embedders });
  const compact = (key: SourceKey, signal?: AbortSignal) => compactSource({ ...deps, embedders }, key, signal);

  async function runIngestionJob(payload: object, context: JobContext): Promise<void> {
    const { appId, ingestionId } = payload as { appId: string; ingestionId: string };
    if (await work.runIngestion(appId, ingestionId, context)) return;
    context.signal.throwIfAborted();
    // Another process holds the ingestion: try again when its lease ends.
    await addJob(db, taskNames.ingest, payload, {
      key: `ingest/${ingestionId}`,
      inMs: leaseSeconds * 1_000,
    });
  }

  const tasks: Tasks = {
    [taskNames.ingest]: runIngestionJob,
    [taskNames.applySyncs]: (payload, context) => applySyncs(work.deps, payload as SourceKey, context),
    [taskNames.mergeIndex]: async (payload) => {
      while (await db.begin((tx) => mergeSegments(tx, payload as SourceKey)));
    },
    [taskNames.embedDocuments]: (payload, context) =>
      'appId' in payload ? embeddingJobs.embedPending(payload as EmbeddingOrder, context) : embeddingJobs.embedAll(),
    [taskNames.learnSources]: async (payload, context) => {
      const { appId } = payload as { appId?: string };
      if (appId !== undefined) return context.waitOutside(() => learnSources(deps, appId, context.signal));
      for (const each of await listAppsToLearn(deps)) await queueLearning(db, each);
    },
    [taskNames.compactIndex]: (payload, context) => compact(payload as SourceKey, context.signal),
    [taskNames.purgeSources]: () => sweepKnowledge(deps),
    [taskNames.startPulls]: () => startDuePulls({ db, clock, log, pullDue: ingestions.pullDue }),
    [taskNames.sweepVersions]: () => sweepVersions(db, clock.now()),
  };

  const service = {
    sources,
    embedding,
    ingestions,
    documents: createDocumentService({ db, sources, permissions, ingestions }),
    boxes: createBoxes(deps),
    attachments: createAttachmentService({ db, sources, ingestions }),
    search: createSearchService({
      ...{ db, sources, index, reranker: deps.reranker, openReranker: deps.openReranker, observe: deps.observeSearch },
    }),
    versions: createVersionService({ db, clock, parser: deps.parser, sources, ingestions }),
    syncs: createSyncService({ db, clock, sources }),
    erased: createErasedDocuments(db, compact),
    inbound: createInboundService({ ...deps, ingestions }),
  };
  return {
    service,
    tasks,
    recurring,
    streams: { [ingestionTopic]: ingestionStream(deps) },
    crawlSinks: { [knowledgeConsumer]: work.sink as CrawlSink },
  } satisfies Domain;
}
