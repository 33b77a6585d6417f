// Written by scripts/generate-clients.ts from openapi.json. Do not edit: npm run clients
import type { CallOptions, Connection, EventStream } from '../connection.ts';
import type * as S from './schema.ts';

export const events = (c: Connection) => ({
  /** Emit an event that may start automations. */
  emit: (body: S.EmitEventRequest, options?: CallOptions): Promise<S.EmitEventResponse> => c.postOnce('/api/v1/events', body, options),
  /** Follow events. */
  stream: (options?: CallOptions): EventStream<S.StreamedEvent> => c.stream('/api/v1/events/stream', undefined, options),
});
