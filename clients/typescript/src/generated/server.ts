// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import type { CallOptions, Connection } from '../connection.ts';
import type * as S from './schema.ts';

export const server = (c: Connection) => ({
  /** Check that the process is alive. */
  health: (options?: CallOptions): Promise<S.GetHealthResponse> => c.get('/healthz', undefined, options),
  /** Check that the server can handle requests. */
  readiness: (options?: CallOptions): Promise<S.GetReadinessResponse> => c.get('/readyz', undefined, options),
});
