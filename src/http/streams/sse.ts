import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Db } from '../../db/database.ts';
import { systemClock } from '../../lib/clock.ts';
import type { UserCaller } from '../../tenancy/caller.ts';
import { hasExpired } from '../../tenancy/credential.ts';
import { whenClosed } from '../closed.ts';
import type { AppShares } from '../limits/app-shares.ts';
import { ChangeWaits } from './change-waits.ts';
import type { StreamHubOptions } from './hub-options.ts';
import { type Log, type LogEntry, type LogSource, notAPosition, sendLog } from './log-stream.ts';
import { ReaderChecks } from './reader-checks.ts';
import { userName } from './readers.ts';
import type { EndsWithReader, Stream, StreamSource, Topic } from './stream.ts';
import { UnreadBytes } from './unread-bytes.ts';
import { type Snapshot, updatesFor } from './versions.ts';
import { endings, type ServerEvent, streamHeaders, WorkStream } from './work-stream.ts';

/**
 * Server-Sent Events for resources that change. The id of an event is the version of the resource that it shows. A
 * stream sends every version after the last one that its reader received, in order, as long as they are kept. A log
 * is streamed the same way: its version is its last position, and a stream sends the entries that its reader accepts.
 * One LISTEN connection per process serves all streams. A change is loaded once for all streams, and many changes
 * with one query.
 */

/**
 * How often readers' credentials and rights are checked: a reader who loses them is cut off in less than two seconds.
 */
const readersCheckMs = 1_000;
const channel = 'quarry_changes';
/** The number of resources of one kind and app that are loaded together before the next app has its turn. */
const loadBatchMax = 500;
const bucketCount = 15;
const stalledMsMax = { usual: 30_000, inFullShare: 2_000 };
const retryMs = { expired: 1_000, drained: 3_000 };

/** Notifies every process that this resource has changed. Call it in the transaction of the change. */
export function announceChange(db: Db, kind: string, appId: string, id: string) {
  return db`select pg_notify(${channel}, ${topicOf(kind, appId, id)})`;
}

/** The same in SQL, for use inside a larger statement. */
export const changeChannel = channel;

export function topicOf(kind: string, appId: string, id: string): string {
  return `${kind}/${appId}/${id}`;
}

/** What opens a stream: the rest follows. */
type Opened = Pick<Stream, 'appId' | 'topic' | 'kind' | 'id' | 'version' | 'accepts'>;

export class StreamHub {
  readonly #options: StreamHubOptions;
  /** The places of open streams, which long responses of other kinds take too (`hold`). */
  readonly shares: AppShares;
  /** Requests that wait for a change without a stream. */
  readonly waits: ChangeWaits;
  readonly #unread: UnreadBytes;
  readonly #sources = new Map<string, StreamSource | LogSource>();
  readonly #topics = new Map<string, Topic>();
  readonly #buckets: Set<Stream>[] = Array.from({ length: bucketCount }, () => new Set());
  /** The topics to load, by kind and app, in the order of their turns. */
  readonly #dirty = new Map<string, Set<string>>();
  #nextBucket = 0;
  #flushing = false;
  #closed = false;
  #timer: NodeJS.Timeout | undefined;
  /** Open streams, oldest first, and the timer that ends the oldest. */
  readonly #byAge = new Set<Stream>();
  #ageTimer: NodeJS.Timeout | undefined;
  /** Long responses that are not streams. */
  readonly #held = new Set<EndsWithReader>();
  readonly #readers: ReaderChecks;
  #readersTimer: NodeJS.Timeout | undefined;
  #unlisten: (() => Promise<void>) | undefined;

  constructor(options: StreamHubOptions) {
    this.#options = options;
    this.shares = options.budget.streams;
    this.waits = new ChangeWaits(options.budget.waits);
    this.#readers = new ReaderChecks(options, {
      ...{ streams: this.#byAge, topics: this.#topics, sources: this.#sources },
      end: (stream) => this.#end(stream),
      listOthers: () => [...this.waits.list(), ...this.#held],
    });
    this.#unread = new UnreadBytes({
      memory: options.budget.unread,
      stalledMs: options.stalledMs ?? stalledMsMax.usual,
      stalledInFullShareMs: stalledMsMax.inFullShare,
    });
  }

  /** Registers how to load and send a kind of resource. Call it before the first stream opens. */
  register(kind: string, source: StreamSource | LogSource): void {
    this.#sources.set(kind, source);
  }

  /** Starts to listen. After a reconnection, every open stream is checked, so no change is missed. */
  async start(): Promise<void> {
    const { unlisten } = await this.#options.listenDatabase.listen(
      channel,
      (topic) => this.#markChanged(topic),
      () => {
        for (const topic of this.#topics.keys()) this.#markDirty(topic);
        this.waits.notifyAll();
      },
    );
    this.#unlisten = unlisten;
    const everyMs = (this.#options.heartbeatMs ?? 15_000) / bucketCount;
    this.#timer = setInterval(() => this.#tick(), everyMs);
    this.#timer.unref();
    this.#readersTimer = setInterval(() => void this.endRevoked(), readersCheckMs);
    this.#readersTimer.unref();
  }

  /** Ends what readers have open who may no longer read it. */
  endRevoked(): Promise<void> {
    return this.#readers.endRevoked();
  }

  /** The apps whose resources are streamed. */
  listApps(): Set<string> {
    return new Set([...this.#byAge].map(({ appId }) => appId));
  }

  /** Ends the streams of an app. Its clients reconnect. */
  endApp(appId: string): void {
    for (const stream of [...this.#byAge]) if (stream.appId === appId) this.#end(stream, retryMs.expired);
  }

  /** The number of resources that are streamed. */
  get topicCount(): number {
    return this.#topics.size;
  }

  /** The number of open streams. */
  get size(): number {
    return this.#byAge.size;
  }

  /** The number of bytes that streams have sent and readers have not read. */
  get unreadBytes(): number {
    return this.#unread.bytes;
  }

  /**
   * Opens a stream of this resource; the caller has checked its visibility. The first event is sent immediately: the
   * current state, or with `Last-Event-ID` every later version. A stream of a log sends only entries that `accepts`
   * passes. 429 if the app already has its share of open streams.
   */
  open(
    request: FastifyRequest,
    reply: FastifyReply,
    kind: string,
    appId: string,
    id: string,
    accepts: (entry: LogEntry) => boolean = () => true,
  ): FastifyReply {
    const endsNow = request.method === 'HEAD' || this.#closed;
    if (!endsNow) this.shares.take(appId);
    const headers = { ...(reply.getHeaders() as OutgoingHttpHeaders), ...streamHeaders };
    reply.hijack();
    const response = reply.raw;
    response.writeHead(200, headers);
    if (endsNow) {
      response.end(request.method === 'HEAD' ? undefined : `retry: ${retryMs.drained}\n\n`);
      return reply;
    }
    response.socket?.setNoDelay(true);
    response.flushHeaders();
    const name = topicOf(kind, appId, id);
    const opened = { appId, topic: name, kind, id, version: this.#startOf(request, kind), accepts };
    const stream = this.#add(request, response, opened, () => this.#markDirty(name));
    let topic = this.#topics.get(name);
    if (!topic) {
      topic = { kind, appId, id, streams: new Set() };
      this.#topics.set(name, topic);
    }
    topic.streams.add(stream);
    this.#forgetWhenClosed(stream);
    this.#markDirty(name);
    return reply;
  }

  /**
   * Opens a stream of the work of this request, which ends like all streams: with the reader's credential, or when what
   * it shows is hidden from them. Nothing is sent before its first event.
   * @param describe writes the last event of a stream that fails
   */
  openWork(
    request: FastifyRequest,
    reply: FastifyReply,
    appId: string,
    describe: (error: unknown) => ServerEvent,
  ): WorkStream {
    if (this.#closed) throw endings.drained();
    this.shares.take(appId);
    const opened = { appId, topic: '', kind: 'work', id: '', version: undefined, accepts: () => true };
    const stream = this.#add(request, reply.raw, opened, () => work.wake());
    const work = new WorkStream(reply, stream.outlet, describe);
    stream.work = work;
    this.#forgetWhenClosed(stream);
    return work;
  }

  /** Takes the place of a stream for a long response of another kind, which breaks off with the reader's credential. */
  hold({ identity, credential }: FastifyRequest, { raw }: FastifyReply, appId: string): void {
    this.shares.takeUntilClosed(raw, appId);
    if (raw.closed) return;
    const held = { identity, credential, end: () => void raw.destroy() };
    this.#held.add(held);
    raw.once('close', () => this.#held.delete(held));
  }

  #add(request: FastifyRequest, response: ServerResponse, opened: Opened, onReady: () => void): Stream {
    const stream: Stream = {
      ...opened,
      identity: request.identity,
      credential: request.credential,
      response,
      outlet: this.#unread.open(response, opened.appId, onReady),
      fresh: true,
      openedAtMs: performance.now(),
    };
    this.#buckets[this.#nextBucket]?.add(stream);
    this.#byAge.add(stream);
    if (this.#ageTimer === undefined) this.#endExpired();
    this.#nextBucket = (this.#nextBucket + 1) % bucketCount;
    return stream;
  }

  #forgetWhenClosed(stream: Stream): void {
    const forget = () => {
      this.#forget(stream);
      stream.work?.stop(endings.gone());
    };
    stream.response.on('error', forget);
    whenClosed(stream.response, forget);
  }

  /** Ends every stream, tells clients when to reconnect, and stops listening. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    clearInterval(this.#readersTimer);
    clearTimeout(this.#ageTimer);
    this.waits.close();
    for (const bucket of this.#buckets) for (const stream of [...bucket]) this.#end(stream, retryMs.drained);
    await this.#unlisten?.();
  }

  /** Where a new stream starts. Only a log resets a reader whose position is none; other streams begin again. */
  #startOf(request: FastifyRequest, kind: string): number | undefined {
    const last = lastEventId(request);
    const source = this.#sources.get(kind);
    if (source !== undefined && 'readLogs' in source) return last ?? source.from;
    return last === notAPosition ? undefined : last;
  }

  #markChanged(topic: string): void {
    this.#markDirty(topic);
    this.waits.notify(topic);
    for (const [kind, source] of this.#sources)
      if ('readLogs' in source && source.endsWith !== undefined && topic.startsWith(`${source.endsWith}/`))
        this.#markDirty(kind + topic.slice(source.endsWith.length));
  }

  #markDirty(topic: string): void {
    if (!this.#topics.has(topic)) return;
    const group = topic.slice(0, topic.lastIndexOf('/'));
    const waiting = this.#dirty.get(group);
    if (waiting) waiting.add(topic);
    else this.#dirty.set(group, new Set([topic]));
    if (this.#flushing) return;
    this.#flushing = true;
    setImmediate(() => this.#flush());
  }

  async #flush(): Promise<void> {
    while (!this.#closed) {
      const [next] = this.#dirty;
      if (next === undefined) break;
      const [group, names] = next;
      const batch: Topic[] = [];
      for (const name of names) {
        names.delete(name);
        const topic = this.#topics.get(name);
        if (topic) batch.push(topic);
        if (batch.length >= loadBatchMax) break;
      }
      // The app's remaining topics wait behind those of the other apps.
      this.#dirty.delete(group);
      if (names.size > 0) this.#dirty.set(group, names);
      const [first] = batch;
      if (first) await this.#load(first.kind, first.appId, batch);
    }
    this.#flushing = false;
  }

  async #load(kind: string, appId: string, topics: Topic[]): Promise<void> {
    const source = this.#sources.get(kind);
    if (!source) return;
    try {
      if ('readLogs' in source) return await this.#showLogs(source, appId, topics);
      const snapshots = await source.load(
        appId,
        topics.map((topic) => topic.id),
      );
      const byId = new Map(snapshots.map((snapshot) => [snapshot.id, snapshot]));
      for (const topic of topics) this.#show(topic, source.event, byId.get(topic.id));
    } catch (error) {
      // No correct event can be sent. The reader reconnects by itself and then gets the current state.
      this.#options.log.error({ err: error, kind }, 'Could not load changes for streams');
      for (const topic of topics) for (const stream of [...topic.streams]) this.#end(stream, retryMs.drained);
    }
  }

  #show(topic: Topic, event: string, snapshot: Snapshot | undefined): void {
    const frames = new Map<number, string>();
    for (const stream of this.#withoutExpired(topic.streams)) {
      if (snapshot) this.#sendChanges(stream, event, snapshot, frames);
      else this.#end(stream);
    }
  }

  /** Ends the streams whose credential has expired, so that nothing is sent to them, and returns the others. */
  #withoutExpired(streams: Iterable<Stream>): Stream[] {
    const now = (this.#options.clock ?? systemClock).now();
    const { true: expired = [], false: open = [] } = Object.groupBy(streams, ({ credential }) =>
      hasExpired(credential, now) ? 'true' : 'false',
    );
    for (const stream of expired) this.#end(stream);
    return open;
  }

  /** Sends a stream the versions it lacks, as many as its reader accepts now. `frames` are shared by all streams. */
  #sendChanges(stream: Stream, event: string, snapshot: Snapshot, frames: Map<number, string>): void {
    const { outlet } = stream;
    const { updates, note } = updatesFor(stream, snapshot);
    for (const [index, { version, data }] of updates.entries()) {
      if (outlet.isFull) return;
      let frame = frames.get(version);
      if (frame === undefined) {
        frame = `id: ${version}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
        frames.set(version, frame);
      }
      outlet.write(index === 0 ? note + frame : frame);
      stream.version = version;
      stream.fresh = false;
    }
    if (snapshot.ended && !stream.fresh && stream.version === snapshot.version) this.#end(stream);
  }

  /** Reads each log once for all streams at the same position, and many logs with one read. */
  async #showLogs(source: LogSource, appId: string, topics: readonly Topic[]): Promise<void> {
    const readers = topics.flatMap(({ id, streams }) => {
      const open = this.#withoutExpired(streams).filter(({ outlet }) => !outlet.isFull);
      return [...Map.groupBy(open, ({ version }) => version)].map(([after, group]) => ({ id, after, streams: group }));
    });
    for (let at = 0; at < readers.length; at += source.readsMax) {
      const reads = readers.slice(at, at + source.readsMax);
      const logs = await source.readLogs(appId, reads);
      for (const [index, { id, streams }] of reads.entries()) await this.#showLog(source, id, streams, logs[index]);
    }
  }

  async #showLog(source: LogSource, id: string, streams: readonly Stream[], log: Log | undefined): Promise<void> {
    const frames = new Map<number, string>();
    const seen = await this.#filterEntries(source, id, streams, log?.entries ?? []);
    for (const stream of streams) {
      if (log === undefined) this.#end(stream);
      else {
        const { identity } = stream;
        const seenByUser = identity.kind === 'user' ? seen?.get(userName(identity)) : undefined;
        const hasMore = sendLog(stream, log, frames, (entry) => seenByUser?.has(entry.position) ?? true);
        if (log.ended && stream.version === log.position) this.#end(stream);
        else if (hasMore && !stream.outlet.isFull) this.#markDirty(stream.topic);
      }
    }
  }

  /** The positions that each user among the readers may see with their current rights. Undefined: all. */
  async #filterEntries(source: LogSource, id: string, streams: readonly Stream[], entries: readonly LogEntry[]) {
    if (source.filterEntries === undefined || entries.length === 0) return undefined;
    const readers = new Map<string, UserCaller>();
    for (const { identity } of streams) if (identity.kind === 'user') readers.set(userName(identity), identity);
    const current = (await this.#options.loadUsers?.([...readers.values()])) ?? [...readers.values()];
    const seen = new Map<string, Set<number>>();
    for (const [index, name] of [...readers.keys()].entries()) {
      const user = current[index];
      seen.set(name, user === undefined ? new Set() : await source.filterEntries(user, id, entries));
    }
    return seen;
  }

  /** Ends the streams that have reached their maximum age, and schedules the next check. */
  #endExpired(): void {
    const lifeMs = this.#options.streamSecondsMax * 1_000;
    this.#ageTimer = undefined;
    for (const stream of this.#byAge) {
      const leftMs = stream.openedAtMs + lifeMs - performance.now();
      if (leftMs > 0) {
        this.#ageTimer = setTimeout(() => this.#endExpired(), leftMs).unref();
        return;
      }
      this.#end(stream, retryMs.expired);
    }
  }

  /** Sends heartbeats to one bucket of streams, and closes the connections of readers that stall. */
  #tick(): void {
    const bucket = this.#buckets[this.#nextBucket];
    this.#nextBucket = (this.#nextBucket + 1) % bucketCount;
    for (const stream of bucket ?? [])
      if (stream.outlet.bytes === 0 && stream.work?.hasBegun !== false)
        stream.outlet.write(heartbeatOf(stream, this.#sources.get(stream.kind)));
    this.#unread.closeStalled();
  }

  #end(stream: Stream, comeBackAfterMs?: number): void {
    this.#forget(stream);
    if (stream.work !== undefined)
      stream.work.stop(comeBackAfterMs === undefined ? endings.hidden() : endings.drained());
    else if (stream.outlet.isFull && comeBackAfterMs !== undefined) stream.response.destroy();
    else stream.response.end(comeBackAfterMs === undefined ? undefined : `retry: ${comeBackAfterMs}\n\n`);
  }

  #forget(stream: Stream): void {
    if (!this.#byAge.delete(stream)) return;
    this.shares.release(stream.appId);
    for (const bucket of this.#buckets) bucket.delete(stream);
    const topic = this.#topics.get(stream.topic);
    topic?.streams.delete(stream);
    if (topic?.streams.size === 0) this.#topics.delete(stream.topic);
  }
}

/** A log's heartbeat carries its position, so a reader who is interested in few entries can resume after the others. */
function heartbeatOf({ version, fresh }: Stream, source: StreamSource | LogSource | undefined): string {
  const isLog = source !== undefined && 'readLogs' in source && !fresh;
  return isLog ? `: heartbeat\nid: ${version}\n\n` : ': heartbeat\n\n';
}

/** The last version that a reconnecting client received: undefined without one, and `notAPosition` if it is none. */
function lastEventId(request: FastifyRequest): number | undefined {
  const id = request.headers['last-event-id'];
  if (id === undefined || id === '') return undefined;
  return typeof id === 'string' && /^\d{1,16}$/.test(id) && Number.isSafeInteger(Number(id))
    ? Number(id)
    : notAPosition;
}
