import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import { createDirectories } from '../../lib/directories.ts';
import { ForwardProxy, type Passage } from '../browser/forward-proxy.ts';
import type { Fetcher } from '../fetch/guarded-fetch.ts';

/** Why a repository could not be read. */
type GitErrorCode = 'git_missing' | 'repository_too_large' | 'fetch_failed' | 'timeout';

export class GitError extends Error {
  readonly code: GitErrorCode;

  constructor(code: GitErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'GitError';
    this.code = code;
  }
}

type RepositoryOptions = {
  fetcher: Fetcher;
  /** The app, whose share of requests the connections use. */
  lane: string;
  /** Where repositories are kept while they are read. */
  directory: string;
  url: string;
  /** The header that signs in. Without one, redirects are followed. */
  authorization: string | undefined;
  /** What may be received in total. */
  bytesMax: number;
  timeoutMs: number;
  signal: AbortSignal;
};

/** A file of a commit: its path, and the name of its contents. */
export type RepositoryFile = { path: string; blob: string };

/** Where git and its helpers are found. */
const programPath = '/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin';
const connectionsMax = 10_000;
const messageCharactersMax = 2_000;
/** What a host may make git list: names of branches, the bytes of a path, and files, whether they are wanted or not. */
const refsBytesMax = 1024 * 1024;
const pathBytesMax = 64 * 1024;
const filesListedMax = 2_000_000;
/** The private memory of a git process: contents that unpack to more than they were sent in end it. */
const memoryKb = 2 * 1024 * 1024;
/** How much more room than they were sent in contents may take on disk. */
const unpackedFactor = 2;
/** A directory that a killed process left is deleted after this time. */
const leftMs = 6 * 3_600_000;

/**
 * A repository on another host, read by the `git` program without its history. It reaches the network only through the
 * guarded proxy, runs no hooks, asks nobody, and reads no configuration of the system.
 */
export class Repository {
  readonly #options: RepositoryOptions;
  readonly #directory: string;
  readonly #proxy: ForwardProxy;
  readonly #passage: Passage;
  readonly #signal: AbortSignal;
  readonly #deadline: AbortSignal;
  /** The packs that have been fetched, and their bytes. */
  readonly #packs = new Map<string, number>();

  private constructor(options: RepositoryOptions, directory: string, proxy: ForwardProxy) {
    this.#options = options;
    this.#directory = directory;
    this.#proxy = proxy;
    this.#passage = proxy.open(options.lane, { bytesMax: options.bytesMax, connectionsMax });
    this.#deadline = AbortSignal.timeout(options.timeoutMs);
    this.#signal = AbortSignal.any([options.signal, this.#deadline]);
  }

  /** Throws GitError if there is no `git`. */
  static async open(options: RepositoryOptions): Promise<Repository> {
    if ((await findGit()) === undefined)
      throw new GitError('git_missing', 'The program git is not installed on this server.');
    await deleteLeft(options.directory);
    const directory = await mkdtemp(join(options.directory, 'pull-'));
    return new Repository(options, directory, await ForwardProxy.start(options.fetcher, '127.0.0.1'));
  }

  /** The commit that a branch points to; without a branch, the default one. */
  async findCommit(branch: string | undefined): Promise<string> {
    const ref = branch === undefined ? 'HEAD' : `refs/heads/${branch}`;
    const listed = (await this.#bytes(['ls-remote', '--', this.#options.url, ref], '', refsBytesMax)).toString();
    const commit = /^([0-9a-f]{40,64})\t/m.exec(listed)?.[1];
    if (commit !== undefined) return commit;
    throw new GitError('fetch_failed', branch === undefined ? 'The repository is empty.' : 'There is no such branch.');
  }

  /** Fetches the names of the files, without their contents and without history. */
  async fetchTree(branch: string | undefined): Promise<void> {
    await this.#text(['init', '--quiet', '--bare', '.']);
    for (const [name, value] of [
      ['remote.origin.url', this.#options.url],
      ['remote.origin.promisor', 'true'],
      ['remote.origin.partialclonefilter', 'blob:none'],
      ['extensions.partialClone', 'origin'],
      ['core.repositoryformatversion', '1'],
    ] as const)
      await this.#text(['config', name, value]);
    const ref = branch === undefined ? 'HEAD' : `refs/heads/${branch}`;
    const wanted = `+${ref}:refs/heads/pulled`;
    await this.#fetch(['--depth=1', '--filter=blob:none', '--no-tags', 'origin', wanted]);
  }

  /**
   * The files of the commit, as git lists them: a tree of any size takes little memory. A few directories that contain
   * each other many times have more files than any program could list.
   */
  async *listFiles(): AsyncGenerator<RepositoryFile> {
    let rest: Buffer = Buffer.alloc(0);
    let listed = 0;
    for await (const chunk of this.#read(['ls-tree', '-r', '-z', '--full-tree', 'refs/heads/pulled'])) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let from = 0;
      for (let end = bytes.indexOf(0); end >= 0; end = bytes.indexOf(0, from)) {
        const found = readTreeLine(bytes.subarray(from, end).toString());
        if (found) yield found;
        from = end + 1;
        listed += 1;
        if (listed > filesListedMax) throw tooLarge(`The repository has more than ${filesListedMax} files.`);
      }
      rest = bytes.subarray(from);
      if (rest.length > pathBytesMax) throw tooLarge(`A path of the repository has more than ${pathBytesMax} bytes.`);
    }
  }

  /** Fetches these contents in one request. Returns the size of each, in bytes. */
  async fetchBlobs(blobs: string[]): Promise<Map<string, number>> {
    const lines = `${[...new Set(blobs)].join('\n')}\n`;
    const options = ['--no-tags', '--no-write-fetch-head', '--recurse-submodules=no', '--filter=blob:none'];
    await this.#fetch([...options, 'origin', '--stdin'], lines);
    const sizes = (await this.#text(['cat-file', '--batch-check'], lines)).split('\n').map((line) => line.split(' '));
    return new Map(sizes.map(([name = '', , size = '']) => [name, Number(size)]));
  }

  /** Reads contents that were fetched, which are held in memory. */
  readBlob(name: string): Promise<Buffer> {
    return this.#bytes(['cat-file', 'blob', name]);
  }

  async close(): Promise<void> {
    this.#passage.close();
    await this.#proxy.close();
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Fetches objects. A host may compress what it sends once more, so what they take on disk is bounded too. */
  async #fetch(args: string[], input = ''): Promise<void> {
    await this.#text(['-c', 'fetch.negotiationAlgorithm=noop', 'fetch', '--quiet', ...args], input);
    const packs = join(this.#directory, 'objects', 'pack');
    for (const name of await readdir(packs))
      if (!this.#packs.has(name)) this.#packs.set(name, (await stat(join(packs, name))).size);
    const bytes = [...this.#packs.values()].reduce((sum, size) => sum + size, 0);
    if (bytes > this.#options.bytesMax * unpackedFactor) throw this.#exceeded();
  }

  async #text(args: string[], input = ''): Promise<string> {
    return (await this.#bytes(args, input)).toString();
  }

  async #bytes(args: string[], input = '', bytesMax = Number.POSITIVE_INFINITY): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of this.#read(args, input)) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > bytesMax) throw tooLarge(`The host lists more than ${bytesMax} bytes of names.`);
    }
    return Buffer.concat(chunks);
  }

  /** What git writes. It ends with its reader. */
  async *#read(args: string[], input = ''): AsyncGenerator<Buffer> {
    const child = this.#start(args);
    // A process that ends early closes its input.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    try {
      yield* child.stdout as AsyncIterable<Buffer>;
      await this.#ended(child, args);
    } finally {
      child.stop();
    }
  }

  #exceeded(): GitError {
    const { bytesMax } = this.#options;
    return tooLarge(
      `The repository is larger than ${bytesMax} bytes as received. Raise max_megabytes, or choose fewer files with include_paths.`,
    );
  }

  #start(args: string[]): Running {
    this.#signal.throwIfAborted();
    const { url } = this.#proxy;
    const { username, password } = this.#passage;
    const proxy = url.replace('://', `://${username}:${password}@`);
    const child = spawn('/bin/sh', ['-c', bounded(this.#options.bytesMax), 'git', ...args], {
      cwd: this.#directory,
      env: gitEnvironment(this.#directory, proxy, this.#options.url, this.#options.authorization),
      // Its own group: the helper that speaks HTTP ends with it.
      detached: true,
    });
    let message = '';
    child.stderr.on('data', (chunk: Buffer) => {
      message = (message + chunk.toString()).slice(-messageCharactersMax);
    });
    const stop = () => {
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) killGroup(child.pid);
    };
    this.#signal.addEventListener('abort', stop, { once: true });
    const ended = new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    }).finally(() => this.#signal.removeEventListener('abort', stop));
    ended.catch(() => {});
    return Object.assign(child, { ended, stop, said: () => message });
  }

  async #ended(child: Running, args: string[]): Promise<void> {
    const code = await child.ended;
    if (code === 0) return;
    this.#options.signal.throwIfAborted();
    if (this.#deadline.aborted) throw new GitError('timeout', 'Reading the repository took too long.');
    if (this.#passage.isExceeded() || /File too large/i.test(child.said())) throw this.#exceeded();
    if (/out of memory|cannot allocate/i.test(child.said()))
      throw tooLarge('The repository takes too much memory to read.');
    throw new GitError('fetch_failed', describe(child.said()), new Error(`git ${args[0]}: ${child.said()}`));
  }
}

function tooLarge(message: string): GitError {
  return new GitError('repository_too_large', message);
}

/**
 * Starts git with bounds of the system: on its memory, and on each file that it writes, in blocks of 512 bytes. Where a
 * system does not know a bound, git runs without it.
 */
function bounded(bytesMax: number): string {
  const blocks = Math.ceil((bytesMax * unpackedFactor) / 512);
  const bounds = [`-d ${memoryKb}`, `-f ${blocks}`, '-c 0'].map((bound) => `ulimit ${bound} 2>/dev/null;`);
  // A file beyond its bound is then an error of git, and no signal that ends it without a word.
  return `trap '' XFSZ; ${bounds.join(' ')} exec git "$@"`;
}

type Running = ChildProcessWithoutNullStreams & { ended: Promise<number | null>; stop(): void; said(): string };

/** The version of the installed git; undefined if there is none. */
export async function findGit(): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn('git', ['--version'], { stdio: ['ignore', 'pipe', 'ignore'], env: { PATH: programPath } });
    let said = '';
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    child.on('error', () => resolve(undefined));
    child.on('close', () => resolve(/git version (\S+)/.exec(said)?.[1]));
  });
}

function gitEnvironment(home: string, proxy: string, url: string, authorization: string | undefined) {
  const settings: [string, string][] = [
    ['http.proxy', proxy],
    ['http.proxyAuthMethod', 'basic'],
    // A redirect to another host would get the header.
    ['http.followRedirects', authorization === undefined ? 'initial' : 'false'],
    ['core.hooksPath', '/dev/null'],
    ['core.bigFileThreshold', '1m'],
    ['credential.helper', ''],
    ['core.packedGitLimit', '256m'],
    ['gc.auto', '0'],
    ['maintenance.auto', 'false'],
    ['pack.threads', '1'],
    ['protocol.version', '2'],
    ['submodule.recurse', 'false'],
    ...(authorization === undefined
      ? []
      : [['http.extraHeader', `Authorization: ${authorization}`] as [string, string]]),
  ];
  const environment: Record<string, string> = {
    PATH: programPath,
    HOME: home,
    LC_ALL: 'C',
    GIT_ALLOW_PROTOCOL: new URL(url).protocol.slice(0, -1),
    GIT_ASKPASS: '',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_LFS_SKIP_SMUDGE: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_CONFIG_COUNT: String(settings.length),
  };
  // Arguments are visible to every user of the machine; the environment is not.
  for (const [i, [name, value]] of settings.entries()) {
    environment[`GIT_CONFIG_KEY_${i}`] = name;
    environment[`GIT_CONFIG_VALUE_${i}`] = value;
  }
  return environment;
}

/** `MODE blob NAME<tab>PATH`. Links and submodules are left out. */
function readTreeLine(line: string): RepositoryFile | undefined {
  const [, mode, blob, path] = /^(\d{6}) blob ([0-9a-f]+)\t(.+)$/s.exec(line) ?? [];
  return blob === undefined || path === undefined || mode === '120000' ? undefined : { path, blob };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
}

/** What the caller is told: never more of git's own words than the kind of failure. */
function describe(said: string): string {
  if (/Authentication failed|could not read Username|\b40[13]\b/.test(said))
    return 'The repository needs other credentials.';
  if (/not found|\b404\b/.test(said)) return 'The repository or branch does not exist.';
  if (/redirect/i.test(said)) return 'The repository has moved: use its new address.';
  if (/not our ref|unadvertised|allowAnySHA1|filter/i.test(said))
    return 'The host does not allow reading single files of a repository.';
  return 'The repository could not be read from its host.';
}

async function deleteLeft(directory: string): Promise<void> {
  createDirectories(directory);
  const before = systemClock.now().getTime() - leftMs;
  for (const name of await readdir(directory)) {
    const path = join(directory, name);
    const found = await stat(path).catch(() => undefined);
    if (found && found.mtimeMs < before) await rm(path, { recursive: true, force: true });
  }
}
