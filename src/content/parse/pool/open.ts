import type { Config } from '../../../config/config.ts';
import type { Logger } from '../../../lib/log.ts';
import { openExtractor } from '../external/extractor.ts';
import { ocrSettings } from './ocr-data.ts';
import { ParserPool } from './pool.ts';

/** The configured parser processes. The first one starts with the first document. */
export function openParsers(config: Config, log: Logger): ParserPool {
  return new ParserPool({
    workers: config.parseWorkers,
    memoryMb: config.parseMemoryMb,
    deadlineMs: config.parseSeconds * 1000,
    needsIsolation: config.parseNetwork === 'isolated',
    jobDeadlineMs: Math.max(config.parseSeconds, config.parseJobSeconds) * 1000,
    ocr: ocrSettings(config),
    extractor: openExtractor(config),
    log,
  });
}
