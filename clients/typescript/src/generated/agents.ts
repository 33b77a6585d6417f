// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const agents = (c: Connection) => ({
  /** Create an agent. */
  create: (body: S.CreateAgentRequest, options?: CallOptions): Promise<S.Agent> => c.postOnce('/api/v1/agents', body, options),
  /** List agents. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; /** Part of the name or the lookup key. */
search?: string | undefined; /** Agents of this user. */
user?: string | undefined; /** Agents of this organisation. */
org?: string | undefined; }, options?: CallOptions): Pages<S.Agent, S.AgentPage> => c.list('/api/v1/agents', query, options),
  /** Get an agent. */
  get: (agent: string, options?: CallOptions): Promise<S.Agent> => c.get(path`/api/v1/agents/${agent}`, undefined, options),
  /** Update an agent. */
  update: (agent: string, body?: S.UpdateAgentRequest, options?: CallOptions): Promise<S.Agent> => c.send('PATCH', path`/api/v1/agents/${agent}`, body, options),
  /** Delete an agent. */
  delete: (agent: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/agents/${agent}`, undefined, options),
  /** Search everything that an agent owns. */
  search: (agent: string, body: S.SearchAgentKnowledgeRequest, options?: CallOptions): Promise<S.SearchAgentKnowledgeResponse> => c.postOnce(path`/api/v1/agents/${agent}/search`, body, options),
});
