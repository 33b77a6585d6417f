// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import { type CallOptions, type Connection, type Pages, path } from '../connection.ts';
import type * as S from './schema.ts';

export const apps = (c: Connection) => ({
  /** Create an app. */
  create: (body: S.CreateAppRequest, options?: CallOptions): Promise<S.App> => c.postOnce('/protected/api/v1/developer/apps', body, options),
  /** List your apps. */
  list: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.App, S.AppPage> => c.list('/protected/api/v1/developer/apps', query, options),
  /** Get an app. */
  get: (app: string, options?: CallOptions): Promise<S.App> => c.get(path`/protected/api/v1/developer/apps/${app}`, undefined, options),
  /** Rename an app or set its limits, how long runs are kept and whether assistants connect. */
  update: (app: string, body?: S.UpdateAppRequest, options?: CallOptions): Promise<S.App> => c.send('PATCH', path`/protected/api/v1/developer/apps/${app}`, body, options),
  /** Get the usage and quotas of the app. */
  usage: (options?: CallOptions): Promise<S.Usage> => c.get('/api/v1/usage', undefined, options),
  /** Create a sandbox. */
  createSandbox: (body: S.CreateSandboxRequest, options?: CallOptions): Promise<S.Sandbox> => c.postOnce('/api/v1/sandboxes', body, options),
  /** List sandboxes. */
  listSandboxes: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.Sandbox, S.SandboxPage> => c.list('/api/v1/sandboxes', query, options),
  /** Get a sandbox. */
  getSandbox: (sandbox: string, options?: CallOptions): Promise<S.Sandbox> => c.get(path`/api/v1/sandboxes/${sandbox}`, undefined, options),
  /** Update a sandbox. */
  updateSandbox: (sandbox: string, body?: S.UpdateSandboxRequest, options?: CallOptions): Promise<S.Sandbox> => c.send('PATCH', path`/api/v1/sandboxes/${sandbox}`, body, options),
  /** Delete a sandbox. */
  deleteSandbox: (sandbox: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/sandboxes/${sandbox}`, undefined, options),
  /** Create an API key. */
  createKey: (body: S.CreateKeyRequest, options?: CallOptions): Promise<S.ApiKey> => c.send('POST', '/api/v1/keys', body, options),
  /** List API keys, including revoked ones. */
  listKeys: (query?: { /** Page number, from 1. Default 1. */
page?: number | undefined; /** Entries per page. Default 25; more than 100 counts as 100. */
page_size?: number | undefined; }, options?: CallOptions): Pages<S.ApiKey, S.ApiKeyPage> => c.list('/api/v1/keys', query, options),
  /** Get an API key. */
  getKey: (key: string, options?: CallOptions): Promise<S.ApiKey> => c.get(path`/api/v1/keys/${key}`, undefined, options),
  /** Delete an API key. */
  deleteKey: (key: string, options?: CallOptions): Promise<void> => c.send('DELETE', path`/api/v1/keys/${key}`, undefined, options),
});
