import { setTimeout as sleep } from 'node:timers/promises';
import { defined } from '../../lib/defined.ts';
import { countOf } from '../count.ts';
import { ApiError, UsageError } from '../errors.ts';
import { extractUrl, isUrl } from './extract.ts';
import { findLocalFile, type LocalFile, readAll, uploadLocalFile } from './local-file.ts';
import { findId } from './names.ts';
import { PageCount } from './progress.ts';
import { jsonLine, type Session } from './session.ts';

export type IngestOptions = {
  title?: string;
  name?: string;
  type?: string;
  metadata?: string;
  dedupe?: boolean;
  pull?: boolean;
  wait: boolean;
};

type Ingestion = {
  id: string;
  status: 'pending' | 'running' | 'awaiting_callback' | 'succeeded' | 'failed';
  metadata: { document?: string; document_reused?: boolean };
  stats: {
    documents?: number;
    chunks?: number;
    pages?: number;
    progress?: { pages_read: number; pages_total: number };
  };
  error?: { code: string; message: string };
};

/** The content of one request: bytes, or a file that is already on the server. */
type Push = { name: string; body: Record<string, unknown> };

/** `quarry ingest <source> <file…|-|url>`: adds each as a document, and waits until it can be searched. */
export async function ingest(
  session: Session,
  source: string,
  paths: string[],
  options: IngestOptions,
): Promise<number> {
  const { pull = false } = options;
  if (pull === paths.length > 0)
    throw new UsageError(pull ? '--pull does not accept files.' : 'Name what to ingest: files, a URL, - or --pull.');
  const more = pull ? {} : readMembers(options, paths.length);
  const locals = new Map<string, LocalFile>();
  for (const path of paths) if (!isUrl(path)) locals.set(path, await findLocalFile(path, options));
  const id = await findId(session.client, 'source', source);
  let code = 0;
  const run = async (push: Push) => {
    if (!(await ingestOne(session, id, push, options.wait))) code = 1;
  };
  if (pull) await run({ name: source, body: { pull: true } });
  for (const path of paths) {
    const local = locals.get(path);
    if (local) await run(await createFilePush(session, local, more));
    else for (const push of await createPagePushes(session, path, more)) await run(push);
  }
  return code;
}

function readMembers({ title, metadata, dedupe, name, type }: IngestOptions, count: number): Record<string, unknown> {
  if (count > 1 && (title ?? name ?? type) !== undefined)
    throw new UsageError('--title, --name and --type require exactly one document.');
  return {
    ...defined({ title }),
    ...(metadata === undefined ? {} : { metadata: readJsonObject('--metadata', metadata) }),
    ...(dedupe ? { dedupe } : {}),
  };
}

/** Parses the JSON object in an option. */
export function readJsonObject(option: string, text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Reported below without the value, which may be long or secret.
  }
  throw new UsageError(`${option} must be a JSON object, such as '{"year": 2026}'.`);
}

/** Above this, base64 in a JSON body costs more than a separate upload. */
const inlineBytesMax = 8 * 1024 * 1024;

async function createFilePush(session: Session, file: LocalFile, more: Record<string, unknown>): Promise<Push> {
  const title = more.title ?? file.name;
  if (file.bytes === undefined || file.bytes > inlineBytesMax) {
    const stored = await uploadLocalFile(session, file);
    return { name: file.name, body: { file: stored.id, ...more, title } };
  }
  const data = (await readAll(file, inlineBytesMax)).toString('base64');
  const content = { data, data_encoding: 'base64', content_type: file.contentType, filename: file.name };
  return { name: file.name, body: { content, ...more, title } };
}

/** Extracts the page on the server. Its text is ingested with its URL. */
async function createPagePushes(session: Session, url: string, more: Record<string, unknown>): Promise<Push[]> {
  const extraction = await extractUrl(session, url, {});
  if (extraction.state === 'failed')
    throw new ApiError(0, `${url} cannot be read: ${extraction.error?.message ?? 'the server gave no reason'}`);
  return (extraction.outputs ?? []).flatMap(({ file, title, source_url }) => {
    if (file === undefined) return [];
    const metadata = { source_url, ...(more.metadata as object | undefined) };
    return [{ name: url, body: { file: file.id, ...more, title: more.title ?? title ?? url, metadata } }];
  });
}

async function ingestOne(session: Session, source: string, push: Push, wait: boolean): Promise<boolean> {
  const { client } = session;
  session.progress.show(`Ingesting ${push.name}`);
  const started = await client.send<Ingestion>('POST', `/knowledge_sources/${encodeURIComponent(source)}/ingest`, {
    body: { ...push.body, on_active: 'queue' },
  });
  session.onInterrupt(`${started.id} continues on the server.`);
  const ended = wait ? await waitForIngestion(session, started, push.name) : started;
  if (session.json) await session.print(jsonLine(ended));
  else if (ended.status !== 'failed') await session.print(describe(ended, push.name));
  if (ended.status === 'failed') session.say(`${push.name}: ${ended.error?.message ?? 'the ingestion failed'}`);
  return ended.status !== 'failed';
}

async function waitForIngestion(session: Session, started: Ingestion, name: string): Promise<Ingestion> {
  let now = started;
  const counted = new PageCount();
  for (let pauseMs = firstPauseMs; !isEnded(now); pauseMs = Math.min(pauseMs * 1.5, lastPauseMs)) {
    await sleep(pauseMs, undefined, { signal: session.signal });
    now = await session.client.send<Ingestion>('GET', `/knowledge_ingestions/${started.id}`);
    const { pages = 0, chunks, progress } = now.stats;
    const read = progress?.pages_read ?? pages;
    const total = progress?.pages_total;
    session.progress.show(
      `Ingesting ${name}${read > 0 ? `, ${counted.describe(read, total)}` : ''}${chunks ? `, ${countOf(chunks, 'chunk')}` : ''}`,
      total ? read / total : undefined,
    );
  }
  return now;
}

const firstPauseMs = 50;
const lastPauseMs = 1_500;

function isEnded({ status }: Ingestion): boolean {
  return status === 'succeeded' || status === 'failed';
}

function describe({ id, status, metadata, stats }: Ingestion, name: string): string {
  if (status !== 'succeeded') return `${id}  ${name}  ${status}\n`;
  const what = metadata.document ?? countOf(stats.documents ?? 0, 'document');
  return `${what}  ${name}  ${metadata.document_reused ? 'already existed' : countOf(stats.chunks ?? 0, 'chunk')}\n`;
}
