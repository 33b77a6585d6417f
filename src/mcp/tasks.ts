import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  type ServerContext,
  type StandardSchemaV1,
} from '@modelcontextprotocol/server';
import { ApiError } from './api-client.ts';
import type { ToolContext, ToolResult, Work, WorkKind } from './tool.ts';
import { runWork } from './tools/automations.ts';
import { extractionWork } from './tools/extractions.ts';
import { ingestionWork } from './tools/ingestion.ts';

/*
 * The extension `io.modelcontextprotocol/tasks`: a call that takes long returns a task, which the client looks at until it
 * has the result. A task is the run, extraction or ingestion that the call started, under its id: nothing else is stored.
 */

const extensionId = 'io.modelcontextprotocol/tasks';
const extensions = { [extensionId]: {} };
/** When a client should look again: at work, and at what waits for people. */
const pollMs = { working: 2_000, waiting: 10_000 };
const kinds: readonly WorkKind[] = [runWork, extractionWork, ingestionWork];

type Capabilities = { extensions?: Record<string, unknown>; elicitation?: { url?: unknown } } | undefined;
/** What the client of a request can do. Clients of earlier revisions say it only once, to no process in particular. */
type ClientAbilities = { takesTasks: boolean; opensUrls: boolean };

export function abilitiesOf({ mcpReq: { envelope } }: ServerContext): ClientAbilities {
  const given = (envelope as Record<string, unknown> | undefined)?.[CLIENT_CAPABILITIES_META_KEY] as Capabilities;
  return {
    takesTasks: given?.extensions?.[extensionId] !== undefined,
    opensUrls: given?.elicitation?.url !== undefined,
  };
}

/** The result of a call whose work is not finished: the task. */
export function presentNewTask(work: Work, client: ClientAbilities): CallToolResult {
  const content: CallToolResult['content'] = [{ type: 'text', text: `${work.message} Its task is ${work.id}.` }];
  return { resultType: 'task', ...presentTask(work, client), content };
}

function presentTask(work: Work, client: ClientAbilities) {
  const { id: taskId, status, message: statusMessage, createdAt, updatedAt: lastUpdatedAt, approval } = work;
  return {
    taskId,
    status: asksPeople(work, client) ? 'input_required' : status,
    ...{ statusMessage, createdAt, lastUpdatedAt, ttlMs: null },
    pollIntervalMs: approval === undefined ? pollMs.working : pollMs.waiting,
  };
}

/** Whether the client can lead the user to an approval that the work waits for. Others get its address as a message. */
function asksPeople({ approval }: Work, { opensUrls }: ClientAbilities): boolean {
  return approval !== undefined && opensUrls;
}

function presentRequests({ approval }: Work) {
  if (approval === undefined) return {};
  const message = 'Somebody has to approve this. Open the page to answer, if you are one of those who may.';
  return { [approval.id]: { method: 'elicitation/create', params: { mode: 'url', message, url: approval.url } } };
}

/** Announces the extension and handles its requests. */
export function registerTasks(
  server: Server,
  contextOf: (request: ServerContext) => ToolContext,
  presentResult: (result: ToolResult<Record<string, unknown>>) => CallToolResult,
): void {
  server.registerCapabilities({ extensions });
  const handle = (method: string, work: (found: Found, client: ClientAbilities) => Promise<Record<string, unknown>>) =>
    server.setRequestHandler(method, { params: taskParams }, async ({ taskId }, request) => {
      const client = abilitiesOf(request);
      if (!client.takesTasks) throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions } });
      return work(await findTask(contextOf(request), taskId), client);
    });
  handle('tasks/get', async ({ work, show }, client) => ({
    ...presentTask(work, client),
    ...(asksPeople(work, client) ? { inputRequests: presentRequests(work) } : {}),
    ...(work.status === 'completed' ? { result: presentResult(await show()) } : {}),
  }));
  // People answer on the page that an input request names, so what the client says about it changes nothing.
  handle('tasks/update', async () => ({}));
  handle('tasks/cancel', async ({ work, cancel }) => {
    if (work.status === 'working') await cancel();
    return {};
  });
}

type Found = Awaited<ReturnType<WorkKind['find']>> & { cancel(): Promise<void> };

/** Hidden and missing work are the same error. */
async function findTask(context: ToolContext, id: string): Promise<Found> {
  const kind = kinds.find(({ idPrefix }) => id.startsWith(idPrefix));
  if (kind === undefined) throw noTask();
  try {
    const found = await kind.find(context, id);
    return { ...found, cancel: () => cancelWork(context, kind, id) };
  } catch (error) {
    throw isApiError(error, 403, 404) ? noTask() : protocolError(error);
  }
}

/** Work that has ended meanwhile, or cannot be cancelled, is left alone. */
async function cancelWork(context: ToolContext, kind: WorkKind, id: string): Promise<void> {
  try {
    await kind.cancel?.(context, id);
  } catch (error) {
    if (!isApiError(error, 404, 409)) throw protocolError(error);
  }
}

function isApiError(error: unknown, ...statuses: number[]): boolean {
  return error instanceof ApiError && statuses.includes(error.status);
}

function noTask(): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, 'There is no such task.');
}

function protocolError(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  const code = error.status < 500 ? ProtocolErrorCode.InvalidRequest : ProtocolErrorCode.InternalError;
  return new ProtocolError(code, error.message, { error: error.error });
}

const taskParams: StandardSchemaV1<unknown, { taskId: string }> = {
  '~standard': {
    version: 1,
    vendor: 'quarry',
    validate(params) {
      const { taskId } = params as { taskId?: unknown };
      return typeof taskId === 'string' ? { value: { taskId } } : { issues: [{ message: 'taskId: must be text' }] };
    },
  },
};
