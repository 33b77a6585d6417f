import type { Static } from 'typebox';
import { limits } from '../../lib/limits.ts';
import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

const members = Type.Object(
  {
    question: Type.String({ minLength: 1, maxLength: limits.approvalQuestionCharactersMax }),
    form: Type.Optional(Type.Object({}, { additionalProperties: true })),
    users: Type.Optional(Type.Array(Type.String(), { maxItems: limits.approvalPeopleMax })),
    teams: Type.Optional(Type.Array(Type.String(), { maxItems: limits.approvalPeopleMax })),
    roles: Type.Optional(Type.Array(Type.Enum(['admin', 'member', 'viewer']), { maxItems: 3 })),
    org: Type.Optional(Type.String()),
    exclude_invoker: Type.Optional(Type.Boolean()),
    on_timeout: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);

export type ApproveMembers = Static<typeof members>;

/**
 * Asks people and waits for the answer of one of them. After `timeout_seconds` (a common member), continues at
 * `on_timeout` or fails.
 */
export const approve = defineNode({
  kind: 'approve',
  needs: undefined,
  members,
  edges: ['on_timeout'],
  nests: true,
  work: { style: 'approval' },
});
