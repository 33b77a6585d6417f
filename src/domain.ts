import type { CrawlSink } from './crawls/types.ts';
import type { LogSource } from './http/streams/log-stream.ts';
import type { StreamSource } from './http/streams/stream.ts';
import type { TaskName } from './jobs/task-names.ts';
import type { Recurring, Task } from './jobs/workers.ts';

/** The parts of a domain: its service for routes, its background work and its event streams. */
export type Domain<Service = unknown> = {
  service: Service;
  tasks?: Tasks;
  recurring?: Recurring[];
  /** Loaders of resources for event streams, by the kind in notifications. */
  streams?: Record<string, StreamSource | LogSource>;
  /** Consumers of crawled pages, by the consumer's name in crawls. */
  crawlSinks?: Record<string, CrawlSink>;
};

/** Handlers of background jobs, by stored task name. */
export type Tasks = { [Name in TaskName]?: Task };
