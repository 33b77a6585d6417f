import { mapOf } from '../../lib/map-schema.ts';
import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Writes a file, with the body of `POST /files`, exactly once. */
export const fileWrite = defineNode({
  kind: 'file_write',
  needs: { area: 'files', reads: false },
  members: Type.Object(
    {
      filename: Type.String({ minLength: 1 }),
      content_type: Type.String({ minLength: 1 }),
      data: Type.String(),
      acl: Type.Optional(mapOf(Type.Unknown())),
      agent: Type.Optional(Type.String()),
      org: Type.Optional(Type.String()),
      team: Type.Optional(Type.String()),
      user: Type.Optional(Type.String()),
      share: Type.Optional(Type.Boolean()),
    },
    { additionalProperties: false },
  ),
  nests: true,
  work: {
    style: 'prepared',
    timeoutSeconds: 600,
    prepare: (members, context) => context.services.prepareFile(members),
  },
});
