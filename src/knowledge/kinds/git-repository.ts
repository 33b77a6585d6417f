import { hash } from 'node:crypto';
import { GitError, Repository, type RepositoryFile } from '../../content/git/repository.ts';
import { pattern } from '../../lib/patterns.ts';
import { Type } from '../../lib/type.ts';
import { ListingPull, listedName } from '../ingestion/listing.ts';
import * as listing from '../ingestion/listing-store.ts';
import { describeFailure, documentBytesMax } from '../ingestion/prepare.ts';
import type { IngestionRun } from '../ingestion/run.ts';
import type { IngestionError } from '../ingestion/store.ts';
import { type Credentials, readCredentials, urlOrigin } from '../sources/credentials.ts';
import type { SourceRow } from '../sources/store.ts';
import type { SourceKind } from './kind.ts';
import { language, readPayload, schedule, url } from './payload.ts';

const filesDefault = 10_000;
const filesMax = 1_000_000;
const megabytesDefault = 500;
const megabytesMax = 10_000;
const timeoutMs = 60 * 60_000;
const filesPerPage = 500;
/** Contents that are fetched in one request. Each is in memory only while it is read and written. */
const blobsPerRequest = 50;
/** Contents that are known to be too large, which no later pull fetches again. */
const tooLargeMax = 10_000;
const patterns = (description: string) => Type.Optional(Type.Array(Type.String(), { maxItems: 100, description }));

const payloadSchema = Type.Object({
  url,
  branch: Type.Optional(
    Type.String({
      ...pattern('^(?!-)[^\\s~^:?*\\[\\\\\\x00-\\x1f\\x7f]{1,200}$', 'must be the name of a branch'),
      description: 'Default: the default branch of the repository.',
    }),
  ),
  include_paths: patterns('Only files whose path matches one of these patterns (* matches anything).'),
  exclude_paths: patterns('No files whose path matches one of these patterns.'),
  max_files: Type.Optional(
    Type.Integer({ minimum: 1, maximum: filesMax, default: filesDefault, description: 'More files fail the pull.' }),
  ),
  max_megabytes: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: megabytesMax,
      default: megabytesDefault,
      description: 'A pull that receives more fails.',
    }),
  ),
  schedule,
  language,
});

export const gitRepository: SourceKind = {
  type: 'git/repository',
  label: 'Git repository',
  description: 'The files of a branch of a repository over HTTPS; a pull reads what has changed.',
  payload: payloadSchema,
  pushable: false,
  credentials: { members: ['username', 'password', 'token'], origin: urlOrigin },
  pull: { by: 'job', run: pullRepository },
};

async function pullRepository(run: IngestionRun, source: SourceRow): Promise<IngestionError | undefined> {
  const { fetcher, secrets, scratchDirectory } = run.deps;
  const given = readPayload(payloadSchema, source.payload);
  const address = String(source.payload?.url);
  const checked = fetcher.check(address);
  if (!checked.ok) return { code: 'unsafe_url', message: `The URL ${checked.problem}` };
  // Plain HTTP is for servers that the operator allows by name or address.
  if (checked.url.protocol !== 'https:' && !fetcher.isNamed(checked.url))
    return { code: 'unsafe_url', message: 'The URL must begin with https://.' };
  let repository: Repository | undefined;
  try {
    repository = await Repository.open({
      fetcher,
      lane: source.appId,
      directory: scratchDirectory,
      url: checked.url.href,
      authorization: authorizationOf(readCredentials(secrets, gitRepository, source)),
      bytesMax: (given.max_megabytes ?? megabytesDefault) * 1024 * 1024,
      timeoutMs,
      signal: run.signal,
    });
    await pullBranch(run, source, repository, given);
    return undefined;
  } catch (error) {
    if (error instanceof GitError) {
      run.deps.log.info({ err: error.cause ?? error, source: source.id }, 'A repository was not read');
      return { code: error.code, message: error.message };
    }
    const failure = describeFailure(error) ?? run.describeRead(error);
    if (!failure) throw error;
    return failure;
  } finally {
    await repository?.close();
  }
}

type Given = ReturnType<typeof readPayload<typeof payloadSchema>>;

async function pullBranch(run: IngestionRun, source: SourceRow, repository: Repository, given: Given): Promise<void> {
  const key = { appId: source.appId, sourceId: source.id };
  const commit = await repository.findCommit(given.branch);
  // Whatever decides which files there are.
  const { branch, include_paths: included, exclude_paths: excluded } = given;
  const scope = hash('sha256', JSON.stringify([source.payload?.url, branch, included, excluded]));
  const before = (source.pullState ?? {}) as Partial<PullState>;
  run.note({ commit });
  if (before.commit === commit && before.scope === scope && source.heldDeletions === null) {
    run.stats.unchanged = await run.commit((tx) => listing.markSeenAgain(tx, key, run.id));
    return;
  }
  await repository.fetchTree(given.branch);
  const pull = new ListingPull(run, source);
  // Before the first document is written, so that a repository beyond the bound changes nothing.
  await requireFewFiles(repository, given);
  const large: LargeContents = { known: new Set(before.too_large), found: new Set() };
  for await (const page of pagesOf(matching(repository, given))) {
    const entries = page.map((file) => ({ ...file, id: listedName(file.path), version: file.blob }));
    const changed = await pull.findChanged(entries);
    for (let at = 0; at < changed.length; at += blobsPerRequest)
      await writeFiles(pull, repository, changed.slice(at, at + blobsPerRequest), large);
  }
  await pull.deleteUnlisted();
  const state: PullState = { commit, scope, too_large: [...large.found].slice(0, tooLargeMax) };
  await run.commit((tx) => listing.setPullState(tx, key, state));
}

type PullState = { commit: string; scope: string; too_large: string[] };
/** Contents that were too large before, and those of this pull that are. */
type LargeContents = { known: ReadonlySet<string>; found: Set<string> };

async function requireFewFiles(repository: Repository, given: Given): Promise<void> {
  const most = given.max_files ?? filesDefault;
  let files = 0;
  for await (const _file of matching(repository, given)) {
    files += 1;
    if (files > most)
      throw new GitError(
        'repository_too_large',
        `The repository has more than ${most} files. Raise max_files, or choose fewer with include_paths.`,
      );
  }
}

async function writeFiles(
  pull: ListingPull,
  repository: Repository,
  files: (RepositoryFile & { id: string; version: string })[],
  { known, found }: LargeContents,
): Promise<void> {
  const unread = files.map(({ blob }) => blob).filter((blob) => !known.has(blob));
  const sizes = unread.length === 0 ? new Map<string, number>() : await repository.fetchBlobs(unread);
  const fits = (blob: string) => (sizes.get(blob) ?? Number.POSITIVE_INFINITY) <= documentBytesMax;
  for (const { blob } of files) if (!fits(blob)) found.add(blob);
  await pull.write(
    files.map(({ id, version, path, blob }) => {
      const filename = path.slice(path.lastIndexOf('/') + 1);
      return {
        ...{ id, version, url: null, title: filename, metadata: { path } },
        async read() {
          if (!fits(blob)) throw Object.assign(new Error('too large'), { name: 'BlobTooLarge' });
          return { bytes: await repository.readBlob(blob), isText: false, filename, contentType: null };
        },
      };
    }),
  );
}

async function* matching(repository: Repository, given: Given): AsyncGenerator<RepositoryFile> {
  const included = (given.include_paths ?? []).map(matcherOf);
  const excluded = (given.exclude_paths ?? []).map(matcherOf);
  for await (const file of repository.listFiles()) {
    const isIn = included.length === 0 || included.some((matches) => matches(file.path));
    if (isIn && !excluded.some((matches) => matches(file.path))) yield file;
  }
}

async function* pagesOf(files: AsyncIterable<RepositoryFile>): AsyncGenerator<RepositoryFile[]> {
  let page: RepositoryFile[] = [];
  for await (const file of files) {
    page.push(file);
    if (page.length < filesPerPage) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

/** `*` matches anything. Takes time in proportion to the path, whatever the pattern. */
function matcherOf(pattern: string): (path: string) => boolean {
  const parts = pattern.split('*');
  const [first = ''] = parts;
  const last = parts.at(-1) ?? '';
  if (parts.length === 1) return (path) => path === pattern;
  return (path) => {
    if (!path.startsWith(first) || !path.endsWith(last)) return false;
    let at = first.length;
    for (const part of parts.slice(1, -1)) {
      const found = path.indexOf(part, at);
      if (found < 0) return false;
      at = found + part.length;
    }
    return at + last.length <= path.length;
  };
}

/** Hosts take a token as the password of any name. */
function authorizationOf({ username, password, token }: Credentials): string | undefined {
  const secret = token ?? password;
  if (secret === undefined && username === undefined) return undefined;
  return `Basic ${Buffer.from(`${username ?? 'x-access-token'}:${secret ?? ''}`).toString('base64')}`;
}
