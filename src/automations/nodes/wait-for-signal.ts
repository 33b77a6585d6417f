import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Waits for a signal by name. After `timeout_seconds` (a common member), continues at `on_timeout` or fails. */
export const waitForSignal = defineNode({
  kind: 'wait_for_signal',
  needs: undefined,
  members: Type.Object(
    { name: Type.String({ minLength: 1, maxLength: 200 }), on_timeout: Type.Optional(Type.String()) },
    { additionalProperties: false },
  ),
  edges: ['on_timeout'],
  nests: true,
  work: { style: 'signal' },
});
