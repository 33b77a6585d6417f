import type { Attachment } from '../../content/models/llm/messages.ts';
import type { ToolDefinition } from '../../content/models/llm/tools.ts';
import type { Db } from '../../db/database.ts';
import { type EventCause, emitEvent, setEventCause } from '../../events/emit.ts';
import { insertMadeFile } from '../../files/of-runs.ts';
import { AppError } from '../../lib/errors.ts';
import { formatId, parseId } from '../../lib/ids.ts';
import type { Caller } from '../../tenancy/caller.ts';
import type { ChildEnd } from '../engine/advance-deps.ts';
import type { Expressions } from '../engine/expressions.ts';
import { loadRunCaller } from '../runs/identity.ts';
import type { RunStarts } from '../runs/start.ts';
import type { RunRow, WorkRow } from '../runs/store.ts';
import * as runStore from '../runs/store.ts';
import { type GenerationDeps, generateForRun } from './generation.ts';
import type { Child, HttpRequest, HttpResponse, NodeServices } from './kind.ts';
import { type NodeTool, nameOfTool } from './tools.ts';

/**
 * The operations of other domains that nodes need, each a public operation: a caller, a body and a response as in the
 * API. `db` is the transaction of the journal entry.
 */
export type NodeDomains = {
  kv: {
    get(db: Db, caller: Caller, key: string, user: string | undefined): Promise<unknown>;
    put(db: Db, caller: Caller, key: string, input: { value: string; user?: string }): Promise<unknown>;
    delete(db: Db, caller: Caller, key: string, user: string | undefined): Promise<void>;
  };
  files: {
    prepare(caller: Caller, body: Record<string, unknown>): Promise<PreparedWrite<{ id: string }>>;
    /** Throws 404, and NodeFailure for a file that a model cannot read. `bytesMax` is for the contents. */
    readAttachment(caller: Caller, file: string, bytesMax: number): Promise<Attachment>;
  };
  /** The tools of the MCP endpoint. */
  operations: {
    describe(name: string): Promise<ToolDefinition>;
    /** Throws NodeFailure. */
    call(caller: Caller, name: string, given: Record<string, unknown>, of: OperationCall): Promise<unknown>;
  };
  extractions: {
    /** Does the slow part, such as reading a document, without a transaction. Its commit returns the UUID. */
    prepare(caller: Caller, body: Record<string, unknown>, signal: AbortSignal): Promise<PreparedWrite<string>>;
    /** How it ended, as the API shows it; undefined while it is active. Throws 404 if it was deleted. */
    findEnd(caller: Caller, id: string): Promise<ChildEnd | undefined>;
  };
  knowledge: {
    ingest(db: Db, caller: Caller, source: string, body: Record<string, unknown>): Promise<{ id: string }>;
    findEnd(caller: Caller, id: string): Promise<ChildEnd | undefined>;
    search(caller: Caller, source: string, body: Record<string, unknown>): Promise<unknown>;
  };
  /** The guarded fetch. Throws NodeFailure. */
  fetch: (request: HttpRequest) => Promise<HttpResponse>;
};

/** The same `key` for repeated calls, which change nothing twice. */
type OperationCall = { key: string; signal: AbortSignal };

/** A change that is ready to be written in a transaction. Call `discard` if it will not be written. */
type PreparedWrite<Written> = { commit(tx: Db): Promise<Written>; discard(): Promise<void> };

type NodeServiceDeps = GenerationDeps & {
  runs: RunStarts;
  domains: NodeDomains;
  expressions: Pick<Expressions, 'checkSchema'>;
};

/** Bytes of all files that one message carries. */
const attachmentBytesMax = 20 * 1024 * 1024;

/** The services of nodes, bound to the identity that a run acts as. */
export function createNodeServices(deps: NodeServiceDeps) {
  return {
    servicesFor: (run: WorkRow) => servicesFor(deps, run),
    findChildEnd: (run: WorkRow, child: Child) => findChildEnd(deps, run, child),
  };
}

async function servicesFor(deps: NodeServiceDeps, run: WorkRow): Promise<NodeServices<Db>> {
  const { runs, domains } = deps;
  const caller = await loadRunCaller(deps.db, run);
  const cause: EventCause = { treeId: runStore.treeOf(run), depth: run.eventDepth + 1 };
  const caused = async <Written>(tx: Db, commit: (tx: Db) => Promise<Written>): Promise<Written> => {
    await setEventCause(tx, cause);
    return commit(tx);
  };
  return {
    ...kvServices(domains.kv, caller),
    async prepareFile(body) {
      const { commit, discard } = await domains.files.prepare(caller, body);
      const write = async (tx: Db) => {
        const file = await caused(tx, commit);
        const id = parseId('file', file.id);
        if (id !== undefined) await insertMadeFile(tx, { appId: run.appId, id }, run.id);
        return { output: file };
      };
      return { commit: write, discard };
    },
    async emitEvent(tx, { name, payload }) {
      const { appId, sandboxId } = run;
      const owner = { orgId: run.orgId, teamId: run.teamId, userId: run.userId, agentId: null };
      const id = await emitEvent(tx, { appId, sandboxId, name, payload, owner, ...cause }, true);
      return id === undefined ? '' : formatId('event', id);
    },
    async prepareRun(input, childKey) {
      const { commit } = await runs.prepareChild(caller, run, input, childKey);
      return { commit: async (tx) => ({ child: await commit(tx) }), discard: async () => {} };
    },
    async prepareExtraction(body, signal) {
      const { commit, discard } = await domains.extractions.prepare(caller, body, signal);
      return { commit: async (tx) => ({ child: { kind: 'extraction', id: await caused(tx, commit) } }), discard };
    },
    async prepareIngestion(source, body) {
      const { ingest } = domains.knowledge;
      const commit = async (tx: Db) => {
        const { id } = await caused(tx, () => ingest(tx, caller, source, body));
        return { child: { kind: 'ingestion' as const, id } };
      };
      return { commit, discard: async () => {} };
    },
    search: (source, body) => domains.knowledge.search(caller, source, body),
    fetch: (request) => domains.fetch({ ...request, lane: run.appId }),
    describeTools: (tools) => Promise.all(tools.map((tool) => describeTool(deps, caller, tool))),
    checkArguments: (schema, value) => deps.expressions.checkSchema(run.appId, schema, value, run.automationId),
    callOperation: (name, given, of) => domains.operations.call(caller, name, given, of),
    async readAttachments(files) {
      const attachments: Attachment[] = [];
      let left = attachmentBytesMax;
      for (const file of files) {
        const attachment = await domains.files.readAttachment(caller, file, left);
        left -= Buffer.byteLength(attachment.base64, 'base64');
        attachments.push(attachment);
      }
      return attachments;
    },
    generate: (attempt, input) => generateForRun(deps, run, attempt, input),
  };
}

/** A missing entry is null, and deleting it succeeds. Agents get the error instead, as for what they may not see. */
function kvServices(kv: NodeDomains['kv'], caller: Caller): Pick<NodeServices<Db>, 'kvGet' | 'kvSet' | 'kvDelete'> {
  return {
    async kvGet(tx, { user, key }) {
      try {
        return await kv.get(tx, caller, key, user);
      } catch (error) {
        if (caller.kind !== 'agent' && isNotFound(error)) return null;
        throw error;
      }
    },
    kvSet: (tx, { user, key, value }) => kv.put(tx, caller, key, { value, ...(user === undefined ? {} : { user }) }),
    async kvDelete(tx, { user, key }) {
      try {
        await kv.delete(tx, caller, key, user);
      } catch (error) {
        if (caller.kind === 'agent' || !isNotFound(error)) throw error;
      }
      return null;
    },
  };
}

async function findChildEnd(
  { db, domains }: NodeServiceDeps,
  run: WorkRow,
  child: Child,
): Promise<ChildEnd | undefined> {
  if (child.kind === 'run') {
    const id = parseId('automationRun', child.id);
    return id === undefined ? gone : runEnd(await runStore.findRun(db, run.appId, id));
  }
  const caller = await loadRunCaller(db, run);
  try {
    return child.kind === 'extraction'
      ? await domains.extractions.findEnd(caller, child.id)
      : await domains.knowledge.findEnd(caller, child.id);
  } catch (error) {
    if (isNotFound(error)) return gone;
    throw error;
  }
}

/** A tool as the model sees it: without the arguments that the graph states. */
async function describeTool(
  { runs, domains }: NodeServiceDeps,
  caller: Caller,
  tool: NodeTool,
): Promise<ToolDefinition> {
  const described =
    tool.operation === undefined
      ? await runs.describeInvocable(caller, tool.automation ?? '')
      : await domains.operations.describe(tool.operation);
  const parameters = withoutMembers(described.parameters, Object.keys(tool.arguments ?? {}));
  return { name: nameOfTool(tool), description: tool.description ?? described.description, parameters };
}

function withoutMembers(schema: unknown, names: readonly string[]): unknown {
  if (names.length === 0 || typeof schema !== 'object' || schema === null) return schema;
  const { properties, required, ...rest } = schema as { properties?: object; required?: unknown };
  const left = Object.entries(properties ?? {}).filter(([name]) => !names.includes(name));
  const stillRequired = Array.isArray(required) ? required.filter((name) => !names.includes(String(name))) : [];
  return {
    ...rest,
    properties: Object.fromEntries(left),
    ...(stillRequired.length === 0 ? {} : { required: stillRequired }),
  };
}

const gone: ChildEnd = {
  error: { code: 'child_gone', message: 'The resource that the node waited for no longer exists.' },
};

/** How a child run ended; undefined while it is active. */
export function runEnd(row: RunRow | undefined): ChildEnd | undefined {
  if (!row) return gone;
  switch (row.status) {
    case 'completed':
      return { output: row.result ?? null };
    case 'failed':
      return {
        error: { code: row.error?.code ?? 'failed', message: `The run failed: ${row.error?.message ?? 'unknown'}` },
      };
    case 'cancelled':
      return { error: { code: 'cancelled', message: 'The run was cancelled.' } };
    default:
      return undefined;
  }
}

function isNotFound(error: unknown): boolean {
  return error instanceof AppError && error.code === 'not_found';
}
