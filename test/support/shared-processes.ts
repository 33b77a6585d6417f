import './cached-parsers.ts';
import { createExpressions, type Expressions } from '../../src/automations/engine/expressions.ts';
import type { Config } from '../../src/config/config.ts';
import { openParsers } from '../../src/content/parse/pool/open.ts';
import type { ParserPool } from '../../src/content/parse/pool/pool.ts';
import { createLogger } from '../../src/lib/log.ts';
import { findShared } from './shared.ts';
import type { TestServerOptions } from './test-server.ts';

/** The pool that test servers with these settings share, or undefined if a server opens its own. */
export function findParsers(config: Config): ParserPool | undefined {
  if (config.extractorUrl !== undefined) return undefined;
  const { parseWorkers, parseMemoryMb, parseSeconds, parseJobSeconds, ocrLanguages, ocrDataDir } = config;
  const settings = [parseWorkers, parseMemoryMb, parseSeconds, parseJobSeconds, ocrLanguages, ocrDataDir];
  return findShared(`parsers ${JSON.stringify(settings)}`, () => openParsers(config, createLogger('error')));
}

/** The processes for expressions that test servers share, or undefined if each server starts its own. */
export function findExpressions(options: TestServerOptions): Expressions | undefined {
  return options.timeouts === undefined ? findShared('expressions', createExpressions) : undefined;
}
