import type { ServerResponse } from 'node:http';
import type { CredentialFacts, Identified } from '../../tenancy/credential.ts';
import type { LogEntry, Sight } from './log-stream.ts';
import type { Outlet } from './unread-bytes.ts';
import type { Snapshot } from './versions.ts';
import type { WorkStream } from './work-stream.ts';

export type StreamSource = Sight & {
  /** The SSE event name. */
  event: string;
  /** Returns the current state of these resources of one app. Missing ones are omitted. */
  load(appId: string, ids: readonly string[]): Promise<Snapshot[]>;
};

/** One open event stream. */
export type Stream = Identified & {
  response: ServerResponse;
  outlet: Outlet;
  appId: string;
  topic: string;
  kind: string;
  id: string;
  /** The version that the reader saw last, or that its `Last-Event-ID` names. */
  version: number | undefined;
  /** True until the first state is sent. */
  fresh: boolean;
  openedAtMs: number;
  /** For a log: whether the stream sends this entry. */
  accepts: (entry: LogEntry) => boolean;
  /** Present if the stream shows the work of one request instead of a resource. */
  work?: WorkStream;
};

/** What else is open for a reader, and must end with their credential. */
export type EndsWithReader = CredentialFacts & { end(): void };

/** A resource that is streamed, and its open streams. */
export type Topic = { kind: string; appId: string; id: string; streams: Set<Stream> };
