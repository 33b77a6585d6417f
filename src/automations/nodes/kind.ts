import type { Static, TObject } from 'typebox';
import type { Attachment } from '../../content/models/llm/messages.ts';
import type { ToolDefinition } from '../../content/models/llm/tools.ts';
import type { Generated, GenerationInput, GenerationUsage } from '../../llm/service.ts';
import type { ScopeNeed } from '../../tenancy/key-scopes.ts';
import type { Generation } from './tool-turns.ts';
import type { NodeTool } from './tools.ts';

export type { NodeError } from './tool-turns.ts';

/** Thrown by a node to fail with its own code. Anything else becomes `internal_error`. */
export class NodeFailure extends Error {
  readonly code: string;
  readonly usage: GenerationUsage | undefined;

  constructor(code: string, message: string, usage?: GenerationUsage) {
    super(message);
    this.name = 'NodeFailure';
    this.code = code;
    this.usage = usage;
  }
}

/** External work that a node waits for. */
export type Child = { kind: 'run' | 'extraction' | 'ingestion'; id: string };

export type HttpRequest = {
  /** The app of the run. */
  lane: string;
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string | undefined;
  signal: AbortSignal;
};
export type HttpResponse = { status: number; headers: Record<string, string>; body: string };

/**
 * The services that nodes may call, bound to the identity that the run acts as.
 * `db` is the transaction of the journal entry: everything written through it commits with the entry or not at all.
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
  /** What the model may call, as it sees it. Throws 404 for an automation that the run may not see. */
  describeTools(tools: readonly NodeTool[]): Promise<ToolDefinition[]>;
  /** How arguments violate a tool's schema. */
  checkArguments(schema: unknown, value: unknown): Promise<{ path: string; message: string }[]>;
  /** Calls a tool of the MCP endpoint. A call that is repeated with the same key changes nothing twice. */
  callOperation(
    name: string,
    given: Record<string, unknown>,
    of: { key: string; signal: AbortSignal },
  ): Promise<unknown>;
  /** The contents of visible files, for a model. */
  readAttachments(files: readonly string[]): Promise<Attachment[]>;
  /** Calls the language model. Readers of the run's output see its text, redacted by `redactBeginning`. */
  generate(attempt: GenerationAttempt, input: GenerationInput): Promise<Generated>;
};

/** The attempt of a node for which a text is generated. */
export type GenerationAttempt = {
  nodeId: string;
  commandId: string;
  attempt: number;
  signal: AbortSignal;
  /** What the model has called so far, and what came of it. */
  calls: Generation | undefined;
  /** See SecretValues. */
  redactBeginning(text: string): { done: string; rest: string };
  redact<T>(value: T): T;
};

/** A change that is ready to be written. */
export type Prepared<Db> = {
  /** Writes the change in the transaction of its journal entry. May be repeated in another transaction. */
  commit(db: Db): Promise<{ output: unknown } | { child: Child }>;
  /** Releases what was reserved for the change, if it will not be written. */
  discard(): Promise<void>;
};

export type NodeContext<Db> = {
  input: unknown;
  commandId: string;
  /** Names the child of this attempt, so that it is created at most once. */
  childKey: string;
  now: Date;
  signal: AbortSignal;
  services: NodeServices<Db>;
  generation: GenerationAttempt;
};

/**
 * How a node's work relates to the journal.
 * - `pure`: start and end are one commit.
 * - `effect`: like `pure`, and its writes commit with them.
 * - `external`: the start is committed first; the work may be repeated after a crash.
 * - `prepared`: like `external`, but its result is a change that is written with its end, or with the child it creates.
 * - `child`: the start commits with the child's row; the end comes when the child ends.
 * - `approval`: its start and its wait commit with the approval's row; the answer arrives like a signal.
 * - `timer`, `signal`, `fan-out`: done by the engine itself.
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
  | { style: 'approval' }
  | { style: 'fan-out' };

export type NodeKind<Schema extends TObject = TObject> = {
  kind: string;
  /** What a key with scopes needs for such a node, apart from writing automations; undefined if nothing. */
  needs: ScopeNeed | undefined;
  /** What it needs for members that name something of another area, if the node has them. */
  memberNeeds?: Readonly<Record<string, ScopeNeed>>;
  /** What it needs in addition because of what its members name. */
  needsOf?(members: Readonly<Record<string, unknown>>): readonly ScopeNeed[];
  /** The kind's own members, after their templates are resolved. */
  members: Schema;
  /** Members that are bare expressions. */
  expressions?: readonly string[];
  /** Optional members that a template may set to null. A template that selects nothing omits any other one. */
  nullable?: readonly string[];
  /** Members that become the payload of another run, and so must contain no secret. */
  handedOn?: readonly string[];
  /** Members that name the next node. */
  edges?: readonly string[];
  /** Whether it may be nested in `for_each` and `parallel`. */
  nests: boolean;
  work: NodeWork<Static<Schema>>;
};

/** Checks a node's work against the type of its members, which the table of kinds does not keep. */
export function defineNode<Schema extends TObject>(kind: NodeKind<Schema>): NodeKind {
  return kind as unknown as NodeKind;
}
