import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Emits an event that may start other automations, exactly once. */
export const emitEvent = defineNode({
  kind: 'emit_event',
  needs: undefined,
  members: Type.Object(
    { name: Type.String({ minLength: 1, maxLength: 200 }), payload: Type.Optional(Type.Unknown()) },
    { additionalProperties: false },
  ),
  handedOn: ['name', 'payload'],
  nests: true,
  work: {
    style: 'effect',
    async run(db, members, context) {
      const event = await context.services.emitEvent(db, { name: members.name, payload: members.payload ?? {} });
      return { event };
    },
  },
});
