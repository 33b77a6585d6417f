import type { CrawlSink } from './crawls/types.ts';
import type { StreamSource } from './http/sse.ts';
import type { TaskName } from './jobs/task-names.ts';
import type { Recurring, Task } from './jobs/workers.ts';

/** What a domain adds to the server: its service for routes, its background work and its event streams. */
export type Domain<Service = unknown> = {
  service: Service;
  tasks?: Tasks;
  recurring?: Recurring[];
  /** How each kind of thing is loaded for event streams, by the kind's name in notifications. */
  streams?: Record<string, StreamSource>;
  /** Where crawled pages go, by the consumer's name in crawls. */
  crawlSinks?: Record<string, CrawlSink>;
};

/** What background jobs do, by the name that they are stored under. */
export type Tasks = { [Name in TaskName]?: Task };
