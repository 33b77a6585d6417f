import type { Static, TObject } from 'typebox';

/** Why a node failed, as its journal entry and `$nodes.<id>.error` show it. */
export type NodeError = { code: string; message: string };

/** Thrown by a node to fail with a code of its own. Whatever else is thrown becomes `internal_error`. */
export class NodeFailure extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.name = 'NodeFailure';
    this.code = code;
  }
}

/** A piece of work outside the run that a node waits for. */
export type Child = { kind: 'run' | 'extraction' | 'ingestion'; id: string };

export type HttpRequest = {
  /** The app that asks. */
  lane: string;
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string | undefined;
  signal: AbortSignal;
};
export type HttpResponse = { status: number; headers: Record<string, string>; body: string };

/**
 * What nodes may ask of the rest of the service, already bound to the identity that the run acts as.
 * `db` is the transaction of the journal entry: what is written through it commits with the entry or not at all.
 */
export type NodeServices<Db> = {
  kvGet(db: Db, input: { user: string | undefined; key: string }): Promise<unknown>;
  kvSet(db: Db, input: { user: string | undefined; key: string; value: string }): Promise<unknown>;
  kvDelete(db: Db, input: { user: string | undefined; key: string }): Promise<unknown>;
  prepareFile(body: Record<string, unknown>): Promise<Prepared<Db>>;
  emitEvent(db: Db, input: { name: string; payload: unknown }): Promise<string>;
  prepareRun(input: { automation: string; payload: unknown }, childKey: string): Promise<Prepared<Db>>;
  prepareExtraction(body: Record<string, unknown>, signal: AbortSignal): Promise<Prepared<Db>>;
  prepareIngestion(source: string, body: Record<string, unknown>): Promise<Prepared<Db>>;
  search(source: string, body: Record<string, unknown>): Promise<unknown>;
  fetch(request: Omit<HttpRequest, 'lane'>): Promise<HttpResponse>;
};

/** A change that is ready to be made. */
export type Prepared<Db> = {
  /** Makes it in the transaction of the journal entry that says so. May be tried again in another. */
  commit(db: Db): Promise<{ output: unknown } | { child: Child }>;
  /** It will not be made: what was put aside for it may go. */
  discard(): Promise<void>;
};

export type NodeContext<Db> = {
  input: unknown;
  commandId: string;
  /** Names the child of this attempt: two of the same are never made. */
  childKey: string;
  now: Date;
  signal: AbortSignal;
  services: NodeServices<Db>;
};

/**
 * How a node's work meets the journal.
 * - `pure`: start and end are one commit.
 * - `effect`: the same, and what it writes commits with them.
 * - `external`: the start is committed first; the work may happen again after a crash.
 * - `prepared`: the same, up to a change that is then made in the commit of the end, or of the child that it is.
 * - `child`: the start commits with the child's row; the end comes when the child ends.
 * - `timer`, `signal`, `fan-out`: the engine itself does them.
 */
type NodeWork<Members> =
  | { style: 'pure'; run(members: Members, context: { input: unknown }): unknown }
  | { style: 'effect'; run<Db>(db: Db, members: Members, context: NodeContext<Db>): Promise<unknown> }
  | { style: 'external'; timeoutSeconds: number; run<Db>(members: Members, context: NodeContext<Db>): Promise<unknown> }
  | {
      style: 'prepared';
      timeoutSeconds: number;
      prepare<Db>(members: Members, context: NodeContext<Db>): Promise<Prepared<Db>>;
    }
  | { style: 'child'; prepare<Db>(members: Members, context: NodeContext<Db>): Promise<Prepared<Db>> }
  | { style: 'timer'; dueAt(members: Members, now: Date): Date }
  | { style: 'signal' }
  | { style: 'fan-out' };

export type NodeKind<Schema extends TObject = TObject> = {
  kind: string;
  /** Members besides the common ones, as they must be once their templates are resolved. */
  members: Schema;
  /** Members that are bare expressions. */
  expressions?: readonly string[];
  /** Members that become the payload of another run, and so must hold no secret. */
  handedOn?: readonly string[];
  /** Members that name the next node. */
  edges?: readonly string[];
  /** Whether it may stand inside `for_each` and `parallel`. */
  nests: boolean;
  work: NodeWork<Static<Schema>>;
};

/** Ties a node's members to its work; the table of kinds forgets the exact type again. */
export function defineNode<Schema extends TObject>(kind: NodeKind<Schema>): NodeKind {
  return kind as unknown as NodeKind;
}
