import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
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
    const listed = await this.#text(['ls-remote', '--', this.#options.url, ref]);
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
    await this.#text(['fetch', '--quiet', '--depth=1', '--filter=blob:none', '--no-tags', 'origin', wanted]);
  }

  /** The files of the commit, as git lists them: a tree of any size takes little memory. */
  async *listFiles(): AsyncGenerator<RepositoryFile> {
    const child = this.#start(['ls-tree', '-r', '-z', '--full-tree', 'refs/heads/pulled']);
    child.stdin.end();
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let from = 0;
      for (let end = bytes.indexOf(0); end >= 0; end = bytes.indexOf(0, from)) {
        const found = readTreeLine(bytes.subarray(from, end).toString());
        if (found) yield found;
        from = end + 1;
      }
      rest = bytes.subarray(from);
    }
    await this.#ended(child, ['ls-tree']);
  }

  /** Fetches these contents in one request, and reads those of at most `sizeMax` bytes; the others are undefined. */
  async readBlobs(blobs: string[], sizeMax: number): Promise<Map<string, Buffer | undefined>> {
    const names = [...new Set(blobs)];
    const lines = `${names.join('\n')}\n`;
    const quiet = ['--quiet', '--no-tags', '--no-write-fetch-head', '--recurse-submodules=no', '--filter=blob:none'];
    await this.#text(['-c', 'fetch.negotiationAlgorithm=noop', 'fetch', ...quiet, 'origin', '--stdin'], lines);
    const sizes = new Map(
      (await this.#text(['cat-file', '--batch-check'], lines))
        .split('\n')
        .map((line) => line.split(' '))
        .map(([name = '', , size = '']) => [name, Number(size)] as const),
    );
    const read = new Map<string, Buffer | undefined>();
    for (const name of names) {
      const size = sizes.get(name);
      read.set(name, size !== undefined && size <= sizeMax ? await this.#bytes(['cat-file', 'blob', name]) : undefined);
    }
    return read;
  }

  async close(): Promise<void> {
    this.#passage.close();
    await this.#proxy.close();
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 3 });
  }

  async #text(args: string[], input = ''): Promise<string> {
    return (await this.#bytes(args, input)).toString();
  }

  async #bytes(args: string[], input = ''): Promise<Buffer> {
    const child = this.#start(args);
    // A process that ends early closes its input.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    const chunks: Buffer[] = [];
    for await (const chunk of child.stdout as AsyncIterable<Buffer>) chunks.push(chunk);
    await this.#ended(child, args);
    return Buffer.concat(chunks);
  }

  #start(args: string[]): Running {
    this.#signal.throwIfAborted();
    const { url } = this.#proxy;
    const { username, password } = this.#passage;
    const proxy = url.replace('://', `://${username}:${password}@`);
    const child = spawn('git', args, {
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
      if (child.pid !== undefined && child.exitCode === null) killGroup(child.pid);
    };
    this.#signal.addEventListener('abort', stop, { once: true });
    const ended = new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    }).finally(() => this.#signal.removeEventListener('abort', stop));
    ended.catch(() => {});
    return Object.assign(child, { ended, said: () => message });
  }

  async #ended(child: Running, args: string[]): Promise<void> {
    const code = await child.ended;
    if (code === 0) return;
    this.#options.signal.throwIfAborted();
    if (this.#deadline.aborted) throw new GitError('timeout', 'Reading the repository took too long.');
    if (this.#passage.isExceeded())
      throw new GitError(
        'repository_too_large',
        `The repository is larger than ${this.#options.bytesMax} bytes as received. Raise max_megabytes, or choose fewer files with include_paths.`,
      );
    throw new GitError('fetch_failed', describe(child.said()), new Error(`git ${args[0]}: ${child.said()}`));
  }
}

type Running = ChildProcessWithoutNullStreams & { ended: Promise<number | null>; said: () => string };

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
  await mkdir(directory, { recursive: true });
  const before = systemClock.now().getTime() - leftMs;
  for (const name of await readdir(directory)) {
    const path = join(directory, name);
    const found = await stat(path).catch(() => undefined);
    if (found && found.mtimeMs < before) await rm(path, { recursive: true, force: true });
  }
}
