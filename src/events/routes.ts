import { bodyBudgets } from '../http/body/budgets.ts';
import { everyCaller, operators } from '../http/route/access.ts';
import { type Api, ref } from '../http/route/route.ts';
import type { StreamHub } from '../http/streams/sse.ts';
import { formatId } from '../lib/ids.ts';
import { eventsTopic } from './log.ts';
import { emittedEventSchema, eventSchema, streamedEventSchema } from './schema.ts';
import type { EventService } from './service.ts';

export function registerEventRoutes(api: Api, { events, streams }: { events: EventService; streams: StreamHub }): void {
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/events/stream',
    operationId: 'streamEvents',
    protocol: 'events',
    tag: 'Webhooks',
    summary: 'Follow events',
    description:
      'Server-Sent Events: first `ready`, after which no event is missed; then an `event` for each event that is visible to the caller, with its `id`, `type`, `timestamp`, `sequence` and `data`. With `Last-Event-ID`, the stream continues after that event. `reset` means that events in between are no longer kept: read the current state again.',
    responses: { 200: ref(streamedEventSchema) },
    async handler({ caller, request, reply }) {
      await events.follow(caller, request.headers['last-event-id'] !== undefined);
      return streams.open(request, reply, eventsTopic, caller.appId, caller.sandboxId);
    },
  });
  api.provisioning(operators, {
    method: 'POST',
    path: '/events',
    operationId: 'emitEvent',
    rateGroup: 'invocations',
    tag: 'Automations',
    changesRights: false,
    summary: 'Emit an event that may start automations',
    description:
      'Runs of the active automations with this trigger start in the background. The event is stored before this returns.',
    body: eventSchema,
    budget: bodyBudgets.map,
    responses: { 201: emittedEventSchema },
    async handler({ caller, body }) {
      return { id: formatId('event', await events.emit(caller, body.name, body.payload)), name: body.name };
    },
  });
}
