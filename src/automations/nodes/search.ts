import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Searches a source, with the body of its search route. */
export const search = defineNode({
  kind: 'search',
  needs: { area: 'knowledge', reads: true },
  members: Type.Object({ source: Type.String({ minLength: 1 }) }, { additionalProperties: true }),
  nests: true,
  work: {
    style: 'external',
    timeoutSeconds: 30,
    run(members, context) {
      const { source, ...body } = members as { source: string } & Record<string, unknown>;
      return context.services.search(source, body);
    },
  },
});
