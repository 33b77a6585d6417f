import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Starts a run of another invoked automation and waits for its result. */
export const runAutomation = defineNode({
  kind: 'run_automation',
  needs: undefined,
  members: Type.Object(
    { automation: Type.String({ minLength: 1 }), payload: Type.Optional(Type.Unknown()) },
    { additionalProperties: false },
  ),
  handedOn: ['payload'],
  nests: true,
  work: {
    style: 'child',
    prepare: (members, context) =>
      context.services.prepareRun({ automation: members.automation, payload: members.payload ?? {} }, context.childKey),
  },
});
