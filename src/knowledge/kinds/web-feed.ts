import { hash } from 'node:crypto';
import { type FeedEntry, type FeedFile, feedLimits } from '../../content/feed-file.ts';
import { FetchError } from '../../content/fetch/errors.ts';
import type { FetchResponse } from '../../content/fetch/guarded-fetch.ts';
import { Type } from '../../lib/type.ts';
import { ListingPull, listedName } from '../ingestion/listing.ts';
import * as listing from '../ingestion/listing-store.ts';
import { describeFailure } from '../ingestion/prepare.ts';
import type { IngestionRun } from '../ingestion/run.ts';
import type { IngestionError } from '../ingestion/store.ts';
import { authorizationOf, readCredentials, urlOrigin } from '../sources/credentials.ts';
import type { SourceRow } from '../sources/store.ts';
import type { SourceKind } from './kind.ts';
import { language, readPayload, schedule, url } from './payload.ts';

const feedTimeoutMs = 60_000;
const pageTimeoutMs = 15_000;
/** Pages of entries that left the feed which one pull looks at. */
const pagesCheckedMax = 50;
const expiredPerStep = 100;
const dayMs = 24 * 3_600_000;

const payloadSchema = Type.Object({
  url,
  keep_days: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 36_500,
      description: 'How long an entry is kept after it left the feed. Default: for ever.',
    }),
  ),
  schedule,
  language,
});

export const webFeed: SourceKind = {
  type: 'web/feed',
  label: 'Feed',
  description: 'The entries of a feed (RSS, RDF, Atom or JSON Feed), each a document; a pull adds new ones.',
  payload: payloadSchema,
  pushable: false,
  credentials: { members: ['username', 'password', 'token'], origin: urlOrigin },
  pull: { by: 'job', run: pullFeed },
};

async function pullFeed(run: IngestionRun, source: SourceRow): Promise<IngestionError | undefined> {
  const headers = authorizationOf(readCredentials(run.deps.secrets, webFeed, source));
  const pull = new ListingPull(run, source);
  const key = { appId: source.appId, sourceId: source.id };
  try {
    const fetched = await fetchFeed(run, source, headers);
    if (fetched !== undefined) {
      const { entries, isWhole } = fetched.feed;
      await takeEntries(pull, entries);
      if (!isWhole) run.note({ feed_cut: true });
      await run.commit((tx) => listing.setPullState(tx, key, fetched.state));
    } else await keepAll(run, key);
    await deleteGone(run, source, pull, headers);
  } catch (error) {
    const failure = describeFailure(error) ?? run.describeRead(error);
    if (!failure) throw error;
    return failure;
  }
  return undefined;
}

type Fetched = { feed: FeedFile; state: Record<string, string> };

/** Undefined if the feed has not changed. Reads only as much as can be used. Throws FetchError and ParseError. */
async function fetchFeed(
  run: IngestionRun,
  source: SourceRow,
  headers: Record<string, string>,
): Promise<Fetched | undefined> {
  const address = String(source.payload?.url);
  const { etag, modified, url: before } = (source.pullState ?? {}) as Record<string, string | undefined>;
  const isSame = before === address;
  const response = await run.deps.fetcher.fetch(address, {
    lane: source.appId,
    signal: run.signal,
    timeoutMs: feedTimeoutMs,
    bytesMax: Number.POSITIVE_INFINITY,
    headers: {
      ...headers,
      ...(isSame && etag !== undefined ? { 'if-none-match': etag } : {}),
      ...(isSame && modified !== undefined ? { 'if-modified-since': modified } : {}),
    },
  });
  if (response.status === 304) {
    response.discard();
    return undefined;
  }
  if (response.status !== 200) {
    response.discard();
    throw new FetchError('bad_response', `The feed responded with ${response.status}.`);
  }
  const { bytes, isCut } = await readStart(response);
  const input = {
    bytes,
    contentEncoding: response.headers['content-encoding'] ?? '',
    decodedBytesMax: feedLimits.bytesMax,
    cutBody: true,
    url: response.url,
    isCut,
  };
  const feed = await run.deps.parser.run<FeedFile>('feed', input, { lane: source.appId, signal: run.signal });
  const state: Record<string, string> = { url: address };
  if (response.headers.etag !== undefined) state.etag = response.headers.etag;
  if (response.headers['last-modified'] !== undefined) state.modified = response.headers['last-modified'];
  return { feed, state };
}

/** A feed that never ends is left after the bytes that can be read. */
async function readStart(response: FetchResponse): Promise<{ bytes: Buffer; isCut: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size >= feedLimits.bytesMax) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, feedLimits.bytesMax), isCut: size >= feedLimits.bytesMax };
}

async function takeEntries(pull: ListingPull, entries: FeedEntry[]): Promise<void> {
  const named = new Map(
    entries.map((entry) => {
      const id = listedName(entry.id);
      return [
        id,
        { ...entry, id, version: hash('sha256', JSON.stringify([entry.title, entry.text, entry.url])) },
      ] as const;
    }),
  );
  const listed = [...named.values()];
  await pull.delete(listed.filter(({ isDeleted }) => isDeleted).map(({ id }) => id));
  const changed = await pull.findChanged(listed.filter(({ isDeleted }) => !isDeleted));
  await pull.write(
    changed.map((entry) => ({
      id: entry.id,
      version: entry.version,
      url: entry.url ?? null,
      title: entry.title ?? null,
      metadata: entry.updated === undefined ? {} : { updated: entry.updated },
      read: async () => ({
        bytes: Buffer.from(entry.isHtml ? `<!doctype html><main><article>${entry.text}</article></main>` : entry.text),
        isText: !entry.isHtml,
        filename: null,
        contentType: entry.isHtml ? 'text/html' : 'text/plain',
      }),
    })),
  );
}

/** A feed that has not changed contains what it contained. */
async function keepAll(run: IngestionRun, key: { appId: string; sourceId: string }): Promise<void> {
  run.stats.unchanged = await run.commit((tx) => listing.markSeenAgain(tx, key, run.id));
}

/** An entry that left the feed is deleted when its page is gone, or after the days that the source sets. */
async function deleteGone(
  run: IngestionRun,
  source: SourceRow,
  pull: ListingPull,
  headers: Record<string, string>,
): Promise<void> {
  const { db, fetcher, clock } = run.deps;
  const key = { appId: source.appId, sourceId: source.id };
  for (const { externalId, sourceUrl } of await listing.listLeft(db, key, run.id, pagesCheckedMax)) {
    run.signal.throwIfAborted();
    const isOwn = URL.canParse(sourceUrl) && new URL(sourceUrl).origin === urlOrigin(source.payload);
    const status = await fetcher
      .fetch(sourceUrl, {
        ...{ lane: source.appId, signal: run.signal, timeoutMs: pageTimeoutMs },
        ...(isOwn ? { headers } : {}),
      })
      .then((response) => {
        response.discard();
        return response.status;
      })
      .catch((error: unknown) => {
        // A page that cannot currently be reached is not gone.
        if (error instanceof FetchError) return undefined;
        throw error;
      });
    if (status === 404 || status === 410) await pull.delete([externalId]);
  }
  const { keep_days: days } = readPayload(payloadSchema, source.payload);
  if (days === undefined) return;
  const before = new Date(clock.now().getTime() - days * dayMs);
  for (;;) {
    const ids = await listing.listSeenBefore(db, key, before, expiredPerStep);
    await pull.delete(ids);
    if (ids.length < expiredPerStep) return;
  }
}
