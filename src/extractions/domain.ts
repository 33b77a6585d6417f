import type { CrawlSink } from '../crawls/types.ts';
import type { Domain } from '../domain.ts';
import { taskNames } from '../jobs/task-names.ts';
import { createExtractionService, type ExtractionDeps, type ExtractionService } from './service.ts';
import { extractionStream } from './stream.ts';
import { type StructureDeps, structureJob } from './structure/job.ts';
import { createSchemas, type SchemaChecker } from './structure/schemas.ts';
import { extractionTopic } from './topic.ts';
import { extractionConsumer, extractionSink } from './workflow.ts';

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
