import { mapOf } from '../../lib/map-schema.ts';
import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';
import { operations } from './operations.ts';

/** One call of a tool of the MCP endpoint, for a `generate` node. Graphs cannot name this kind. */
export const callOperation = defineNode({
  kind: 'call_operation',
  needs: undefined,
  needsOf: ({ operation }) => [operations[String(operation)]].filter((need) => need !== undefined),
  members: Type.Object(
    { operation: Type.Enum(Object.keys(operations)), arguments: Type.Optional(mapOf(Type.Unknown())) },
    { additionalProperties: false },
  ),
  nests: true,
  work: {
    style: 'external',
    timeoutSeconds: 60,
    run: ({ operation, arguments: given = {} }, { services, commandId, signal }) =>
      services.callOperation(operation, given, { key: commandId, signal }),
  },
});
