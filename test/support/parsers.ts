import './cached-parsers.ts';
import type { Config } from '../../src/config/config.ts';
import { openParsers } from '../../src/content/parse/pool/open.ts';
import type { ParserPool } from '../../src/content/parse/pool/pool.ts';
import { createLogger } from '../../src/lib/log.ts';
import { findShared } from './shared.ts';

/** The pool that test servers with these settings share, or undefined if a server opens its own. */
export function findParsers(config: Config): ParserPool | undefined {
  if (config.extractorUrl !== undefined) return undefined;
  const { parseWorkers, parseMemoryMb, parseSeconds, parseJobSeconds, ocrLanguages, ocrDataDir } = config;
  const settings = [parseWorkers, parseMemoryMb, parseSeconds, parseJobSeconds, ocrLanguages, ocrDataDir];
  return findShared(`parsers ${JSON.stringify(settings)}`, () => openParsers(config, createLogger('error')));
}
