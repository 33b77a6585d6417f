import './cached-parsers.ts';
import { after } from 'node:test';
import type { Config } from '../../src/config.ts';
import { openParsers } from '../../src/content/parse/pool/open.ts';
import type { ParserPool } from '../../src/content/parse/pool/pool.ts';
import { createLogger } from '../../src/log.ts';

/** The pools of this process by their settings; undefined while every test server has its own. */
let pools: Map<string, ParserPool> | undefined;

/**
 * From now on, the test servers of this process with the same settings share their parser processes: to start two takes
 * more processor time than all else that most test files do. They end after the last test.
 */
export function shareParsers(): void {
  const opened = new Map<string, ParserPool>();
  pools = opened;
  after(async () => {
    for (const pool of opened.values()) await pool.close();
  });
}

/** The pool for a test server with these settings; undefined if it opens its own. */
export function findParsers(config: Config): ParserPool | undefined {
  if (pools === undefined) return undefined;
  const { parseWorkers, parseMemoryMb, parseSeconds, parseJobSeconds, ocrLanguages, ocrDataDir } = config;
  const key = JSON.stringify([parseWorkers, parseMemoryMb, parseSeconds, parseJobSeconds, ocrLanguages, ocrDataDir]);
  const pool = pools.get(key) ?? openParsers(config, createLogger('error'));
  pools.set(key, pool);
  return pool;
}
