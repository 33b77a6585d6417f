import type { CrawlSink } from '../crawls/types.ts';
import type { Domain } from '../domain.ts';
import { createExtractionService, type ExtractionDeps, type ExtractionService } from './service.ts';
import { extractionStream } from './stream.ts';
import { extractionConsumer, extractionSink, extractionTopic } from './workflow.ts';

export function createExtractions(deps: ExtractionDeps): Domain<ExtractionService> {
  return {
    service: createExtractionService(deps),
    streams: { [extractionTopic]: extractionStream(deps) },
    crawlSinks: { [extractionConsumer]: extractionSink(deps) as CrawlSink },
  };
}
