import { Type } from '../../lib/type.ts';
import { defineNode, NodeFailure } from './kind.ts';

const waitSecondsMax = 366 * 24 * 3_600;

/** Sleeps for `seconds` or until a time. A waiting node is a row, not a process. */
export const wait = defineNode({
  kind: 'wait',
  needs: undefined,
  members: Type.Object(
    {
      seconds: Type.Optional(Type.Number({ minimum: 0, maximum: waitSecondsMax })),
      until: Type.Optional(Type.String({ minLength: 1 })),
    },
    { additionalProperties: false },
  ),
  nests: true,
  work: {
    style: 'timer',
    dueAt(members, now) {
      if ((members.seconds === undefined) === (members.until === undefined))
        throw new NodeFailure('invalid_members', 'Exactly one of seconds and until must be given.');
      if (members.seconds !== undefined) return new Date(now.getTime() + members.seconds * 1_000);
      const until = new Date(members.until ?? '');
      if (Number.isNaN(until.getTime())) throw new NodeFailure('invalid_members', 'until must be an ISO 8601 time.');
      if (until.getTime() > now.getTime() + waitSecondsMax * 1_000)
        throw new NodeFailure('invalid_members', 'until must be within 366 days.');
      return until;
    },
  },
});
