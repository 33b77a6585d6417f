import type { UserCaller } from '../../tenancy/caller.ts';
import type { StreamHubOptions } from './hub-options.ts';
import type { LogSource } from './log-stream.ts';
import { rightsOf, userName } from './readers.ts';
import type { EndsWithReader, Stream, StreamSource, Topic } from './stream.ts';

/** The open streams, which their hub changes. */
type OpenStreams = {
  streams: ReadonlySet<Stream>;
  topics: ReadonlyMap<string, Topic>;
  sources: ReadonlyMap<string, StreamSource | LogSource>;
  /** Ends a stream for good. */
  end(stream: Stream): void;
  /** Open responses that are not streams. */
  listOthers(): EndsWithReader[];
};

/** Finds the streams, and what else is open, whose readers may no longer read them. */
export class ReaderChecks {
  readonly #options: Pick<StreamHubOptions, 'findEnded' | 'loadUsers' | 'log'>;
  readonly #open: OpenStreams;
  #checking = false;

  constructor(options: Pick<StreamHubOptions, 'findEnded' | 'loadUsers' | 'log'>, open: OpenStreams) {
    this.#options = options;
    this.#open = open;
  }

  /** Ends what readers have open whose credential has ended, and streams of what they may no longer see or is gone. */
  async endRevoked(): Promise<void> {
    const { findEnded, log } = this.#options;
    const readers = [...this.#open.streams, ...this.#open.listOthers()];
    if (findEnded === undefined || this.#checking || readers.length === 0) return;
    this.#checking = true;
    try {
      for (const ended of await findEnded(readers))
        if ('end' in ended) ended.end();
        else this.#open.end(ended);
      await this.#endGone();
      await this.#endHidden();
      await this.#endHiddenWork();
    } catch (error) {
      // The state is unknown now. The next check follows in a second.
      log.warn({ err: error }, 'Could not check the readers of streams');
    } finally {
      this.#checking = false;
    }
  }

  /** A resource that goes with its owner, such as an extraction with its agent, announces nothing. */
  async #endGone(): Promise<void> {
    for (const [kind, topics] of Map.groupBy(this.#open.topics.values(), (topic) => topic.kind)) {
      const existing = await this.#open.sources.get(kind)?.filterExisting?.(topics);
      if (existing === undefined) continue;
      const ids = new Set(existing);
      for (const { id, streams } of topics) if (!ids.has(id)) for (const stream of [...streams]) this.#open.end(stream);
    }
  }

  /**
   * The owner of a streamed resource never changes, so a reader loses sight of it only when their own rights change, or
   * by its grants. Visibility is checked again only then, or if it has grants.
   */
  async #endHidden(): Promise<void> {
    const byUser = Map.groupBy(
      [...this.#open.streams].filter((stream) => stream.identity.kind === 'user'),
      ({ identity }) => userName(identity as UserCaller),
    );
    const readers = [...byUser.values()].map((streams) => streams[0]?.identity as UserCaller);
    const users = readers.length === 0 ? [] : await this.#options.loadUsers?.(readers);
    for (const user of users ?? []) {
      if (user === undefined) continue;
      const rights = rightsOf(user);
      const changed = (byUser.get(userName(user)) ?? []).filter(
        ({ identity, kind }) => rightsOf(identity as UserCaller) !== rights || this.#open.sources.get(kind)?.hasGrants,
      );
      for (const [kind, streams] of Map.groupBy(changed, ({ kind }) => kind)) {
        const seen = new Set(
          await this.#open.sources.get(kind)?.filterVisible(user, [...new Set(streams.map(({ id }) => id))]),
        );
        for (const stream of streams) {
          stream.identity = user;
          if (stream.work === undefined && !seen.has(stream.id)) this.#open.end(stream);
        }
      }
    }
  }

  /** What the work of a request shows may be hidden at any time, whatever its reader's own rights. */
  async #endHiddenWork(): Promise<void> {
    const works = [...this.#open.streams].filter(({ work }) => work !== undefined);
    await Promise.all(
      works.map(async (stream) => {
        if (!(await stream.work?.isVisible(stream.identity))) this.#open.end(stream);
      }),
    );
  }
}
