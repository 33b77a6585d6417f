import type { FastifyRequest } from 'fastify';
import { callerHeaders } from '../http/route/credential-headers.ts';
import { AppError, type ErrorCode, errorCodes, notFound } from '../lib/errors.ts';
import { formatId, idPrefixes, nativeId } from '../lib/ids.ts';

/** The path that reads a resource of each kind. A resource without its own path is visible if its container is. */
export const pathsOfKinds: Partial<Record<keyof typeof idPrefixes, string>> = {
  agent: '/api/v1/agents/',
  automation: '/api/v1/automations/',
  automationRun: '/api/v1/automation_runs/',
  document: '/api/v1/knowledge_documents/',
  extraction: '/api/v1/extractions/',
  file: '/api/v1/files/',
  ingestion: '/api/v1/knowledge_ingestions/',
  installation: '/api/v1/installations/',
  org: '/api/v1/orgs/',
  sandbox: '/api/v1/sandboxes/',
  source: '/api/v1/knowledge_sources/',
  sync: '/api/v1/knowledge_syncs/',
  team: '/api/v1/teams/',
  thread: '/api/v1/threads/',
  user: '/api/v1/users/',
  webhook: '/api/v1/webhooks/',
};

/**
 * Checks that the caller may still see the resources named in the path and the one that the response is about.
 * Otherwise, throws what reading them returns now. An operation that the caller may use on a resource that they
 * cannot read by itself (403) passes.
 */
export async function requireStillVisible(request: FastifyRequest, body: unknown): Promise<void> {
  const { app: _app, ...params } = (request.params ?? {}) as Record<string, string>;
  const { id, ingestion, user, key, value } = (body ?? {}) as Record<string, unknown>;
  const paths = new Set([...Object.values(params), id, ingestion].flatMap((named) => pathOf(named) ?? []));
  for (const url of paths) await read(request, url);
  if (typeof user === 'string' && typeof key === 'string' && value !== undefined)
    await requireEntry(request, user, key);
}

/** An entry has no id. If it exists, it is first in the list of keys that begin with its key. */
async function requireEntry(request: FastifyRequest, user: string, key: string): Promise<void> {
  const query = new URLSearchParams({ user, prefix: key, limit: '1' });
  const page = await read(request, `/api/v1/kv_entries?${query.toString()}`);
  if (page && (page as { data: { key: string }[] }).data[0]?.key !== key) throw notFound();
}

/** The body that the caller gets from this path, or undefined if they may not read it. Throws any other error. */
async function read(request: FastifyRequest, url: string): Promise<unknown> {
  const headers = { ...callerHeaders(request), ...scopeHeaders(request) };
  const response = await request.server.inject({ method: 'GET', url, headers, remoteAddress: request.ip });
  if (response.statusCode === 403) return undefined;
  if (response.statusCode < 400) return response.json();
  const { code, message } = (response.json() as { error: { code: ErrorCode; message: string } }).error;
  if (!(code in errorCodes)) throw new Error(`Reading ${url} failed with ${response.statusCode}.`);
  throw new AppError(code, message);
}

function pathOf(named: unknown): string | undefined {
  if (typeof named !== 'string') return undefined;
  const id = nativeId(named);
  const prefix = id.slice(0, id.indexOf('_'));
  for (const [kind, path] of Object.entries(pathsOfKinds)) {
    const prefixes: readonly string[] = idPrefixes[kind as keyof typeof idPrefixes];
    if (prefixes.includes(prefix)) return `${path}${encodeURIComponent(id)}`;
  }
  return undefined;
}

/** The app that a developer names in the path. */
function scopeHeaders({ identity }: FastifyRequest): Record<string, string> {
  return identity?.kind === 'developer' ? { 'x-app': formatId('app', identity.appId) } : {};
}
