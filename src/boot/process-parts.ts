import { createExpressions, type Expressions } from '../automations/engine/expressions.ts';
import type { BlobStore } from '../blob/blob-store.ts';
import { openBlobStore } from '../blob/open.ts';
import type { Config } from '../config/config.ts';
import { openRenderer, type Renderer } from '../content/browser/renderer.ts';
import type { SharedEmbedder } from '../content/embed/in-lanes.ts';
import { openEmbedder } from '../content/embed/open.ts';
import { createFetcher, type Fetcher } from '../content/fetch/guarded-fetch.ts';
import { createSystemResolver, type Resolver } from '../content/fetch/resolver.ts';
import { openReranker, type Reranker } from '../content/models/reranker.ts';
import { openParsers } from '../content/parse/pool/open.ts';
import type { ParserPool } from '../content/parse/pool/pool.ts';
import { BodyMemory } from '../crawls/body-memory.ts';
import { Slots } from '../fairness/slots.ts';
import { Intake } from '../http/body/intake.ts';
import { AppShares } from '../http/limits/app-shares.ts';
import { Connections } from '../http/limits/connections.ts';
import type { Metrics } from '../http/metrics.ts';
import { createStreamBudget, type StreamBudget } from '../http/streams/hub-options.ts';
import { IssuerKeys } from '../identity/issuer-keys.ts';
import { JobSlots } from '../jobs/job-slots.ts';
import { ComputingThreads } from '../knowledge/computing/threads.ts';
import { type OpenCache, openCaches } from '../knowledge/index/cache.ts';
import type { Clock } from '../lib/clock.ts';
import { limits } from '../lib/limits.ts';
import type { Logger } from '../lib/log.ts';
import { type Timeouts, usualTimeouts } from '../lib/timeouts.ts';
import { ModelSlots } from '../llm/model-slots.ts';
import { observeBlobs, observeFetcher } from '../monitoring/traffic.ts';

/** What a process has once, however many cells it serves: these budgets must not multiply with them. */
export type ProcessParts = {
  /** What `/metrics` shows: the metrics of the process, and those of each cell. */
  metrics: Metrics;
  blobs: BlobStore;
  parser: ParserPool;
  /** Resolves host names, for the fetcher and for the services that the settings name. */
  resolve: Resolver;
  timeouts: Readonly<Timeouts>;
  /** The only client for URLs that come from outside. */
  fetcher: Fetcher;
  /** Renders pages that need a browser. Undefined unless configured. */
  renderer: Renderer | undefined;
  /** The public keys of issuers of external identities. */
  issuerKeys: IssuerKeys;
  expressions: Expressions;
  embedder: SharedEmbedder;
  reranker: Reranker | undefined;
  /** The cache of search. */
  openCache: OpenCache;
  /** What computes searches of large sources. */
  threads: ComputingThreads;
  llmSlots: ModelSlots;
  vectorSlots: ModelSlots;
  crawlSlots: Slots;
  crawlBodies: BodyMemory;
  streamBudget: StreamBudget;
  mcpWaits: AppShares;
  jobSlots: JobSlots;
  intake: Intake;
  connections: Connections;
};

type Options = {
  clock: Clock;
  metrics: Metrics;
  parser: ParserPool | undefined;
  resolve: Resolver | undefined;
  timeouts: Readonly<Timeouts> | undefined;
  expressions?: Expressions | undefined;
  threads?: ComputingThreads | undefined;
  /** Notes how to stop a part. */
  onStarted(name: string, end: () => Promise<unknown>): void;
};

/** Starts what the process has once. */
export async function startProcessParts(config: Config, log: Logger, options: Options): Promise<ProcessParts> {
  const { clock, metrics, onStarted, timeouts = usualTimeouts } = options;
  const blobs = observeBlobs(metrics, await openBlobStore(config));
  onStarted('blob store', () => blobs.close());
  const parser = options.parser ?? openParsers(config, log);
  if (options.parser === undefined) onStarted('parser pool', () => parser.close());
  const resolve = options.resolve ?? createSystemResolver();
  const { fetchAllow: allow, fetchContact: contact } = config;
  const fetcher = observeFetcher(metrics, createFetcher({ allow, contact, resolve, timeouts }));
  onStarted('connections to sites', () => fetcher.close());
  const renderer = openRenderer(config, fetcher, log);
  if (renderer !== undefined) onStarted('renderer', () => renderer.close());
  const threads = options.threads ?? new ComputingThreads();
  if (options.threads === undefined) onStarted('threads of searches', () => threads.close());
  return {
    ...{ metrics, blobs, parser, resolve, timeouts, fetcher, renderer },
    issuerKeys: new IssuerKeys({ fetcher, clock, log }),
    expressions: options.expressions ?? createExpressions(timeouts),
    embedder: openEmbedder(config, resolve),
    reranker: openReranker(config, resolve),
    openCache: openCaches(config.searchCacheMb * 1024 * 1024),
    threads,
    llmSlots: new ModelSlots(config.llmConcurrency),
    vectorSlots: new ModelSlots(config.embedConcurrency),
    // Two apps can each have a whole crawl's pages active. More apps share the slots.
    crawlSlots: new Slots({ slots: 2 * config.crawlConcurrency }),
    crawlBodies: new BodyMemory(limits.crawlBodyBytesMax),
    streamBudget: createStreamBudget({
      streamsMax: config.streamsMax,
      unreadBytesMax: config.streamMemoryMb * 1024 * 1024,
    }),
    mcpWaits: new AppShares(config.mcpWaitsMax, 'calls of tools that wait'),
    jobSlots: new JobSlots(config.jobWorkers, { waits: limits.jobWaits, clock }),
    intake: new Intake({ clock, memoryBytesMax: config.bodyMemoryMb * 1024 * 1024 }),
    connections: new Connections(config),
  };
}
