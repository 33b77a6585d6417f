import type { CrawlSink } from '../crawls/types.ts';
import type { Domain } from '../domain.ts';
import { taskNames } from '../jobs/task-names.ts';
import type { ExtractionDeps } from './prepared.ts';
import { createExtractionService, type ExtractionService } from './service.ts';
import { extractionStream } from './stream.ts';
import { type StructureDeps, structureJob } from './structure/job.ts';
import { createSchemas, type SchemaChecker } from './structure/schemas.ts';
import { extractionTopic } from './topic.ts';
import { extractionConsumer, extractionSink } from './workflow.ts';

/*
 * Documents, pages and sites become Markdown, and with a schema data.
 * - `request.ts` turns a body into what is extracted and where its outputs go.
 * - `prepare-document.ts` parses documents while the request waits; with `prepare-crawl.ts`, links and sites become a crawl,
 *   whose pages `workflow.ts` takes. `service.ts` writes what they prepare, and reads it.
 * - Each output is a row, and a file or a config entry; `names.ts` names it.
 * - structure/ is the job that reads data from outputs with a language model: it divides texts, merges answers, and finds
 *   the position of each value.
 * - `stream.ts` shows the progress; `present.ts` the JSON.
 */

type Deps = Omit<ExtractionDeps & StructureDeps, 'schemas'> & { schemaChecker: SchemaChecker };

export function createExtractions({ schemaChecker, ...given }: Deps): Domain<ExtractionService> {
  const deps = { ...given, schemas: createSchemas(schemaChecker) };
  return {
    service: createExtractionService(deps),
    tasks: { [taskNames.structureExtraction]: structureJob(deps) },
    streams: { [extractionTopic]: extractionStream(deps) },
    crawlSinks: { [extractionConsumer]: extractionSink(deps) as CrawlSink },
  };
}
