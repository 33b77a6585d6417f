import processes, { type ChildProcess, type SpawnOptions } from 'node:child_process';
import { chownSync, mkdirSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { projectRoot } from './source.ts';

/*
 * Lets the parser processes that this process starts load their code compiled. A parser may not write anywhere, so it
 * has no compile cache and compiles a hundred files at each start. Only the programs named here use the cache: tests
 * of a parser's confinement use one without it (faulty-parser.ts).
 */
const programs = ['parse/pool', 'learn'].map((path) => join(projectRoot, 'src/content', path, 'worker.ts'));
const cacheDirectory = join(projectRoot, 'node_modules', '.cache', 'quarry-tests', 'parsers');
const boundOfFiles = 'ulimit -f 0; ';

/** The next process writes the cache. */
let filling: ((child: ChildProcess) => void) | undefined;
const { spawn } = processes;
processes.spawn = ((command: string, args: string[], options: SpawnOptions) => {
  if (!programs.includes(args?.at?.(-1) ?? '')) return spawn(command, args, options);
  const env = { ...options.env, NODE_COMPILE_CACHE: cacheDirectory };
  const more = ['read', 'write'].map((access) => `--allow-fs-${access}=${cacheDirectory}/`);
  const all = args.toSpliced(args.indexOf('--permission') + 1, 0, ...more);
  if (filling === undefined) return spawn(command, all, { ...options, env });
  const child = spawn(
    command,
    all.map((arg) => arg.replace(boundOfFiles, '')),
    { ...options, env },
  );
  filling(child);
  return child;
}) as typeof spawn;
syncBuiltinESMExports();

/** Updates the cache: each program starts, without its limit on files, and ends by itself. */
export async function fillParserCache(): Promise<void> {
  const { findConfinement } = await import('../../src/content/parse/pool/confinement.ts');
  const { ParserProcess } = await import('../../src/content/parse/pool/process.ts');
  mkdirSync(cacheDirectory, { recursive: true });
  // A parser that has started does not keep this process alive, and nothing else may be left to wait for.
  const awake = setInterval(() => {}, 1_000);
  try {
    for (const workerFile of programs) await fillCache(workerFile);
  } finally {
    clearInterval(awake);
  }

  async function fillCache(workerFile: string): Promise<void> {
    const { userId } = findConfinement(workerFile);
    if (userId !== undefined) chownSync(cacheDirectory, userId, userId);
    const started = Promise.withResolvers<ChildProcess>();
    filling = started.resolve;
    const parser = new ParserProcess({ memoryMb: 512, workerFile });
    filling = undefined;
    const child = await started.promise;
    await parser.ready;
    child.stdin?.end();
    await parser.exited;
  }
}
