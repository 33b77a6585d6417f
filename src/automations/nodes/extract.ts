import { mapOf } from '../../lib/map-schema.ts';
import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

/** Starts an extraction, with the body of `POST /extractions`, and waits for its end. */
export const extract = defineNode({
  kind: 'extract',
  needs: { area: 'extractions', reads: false },
  memberNeeds: { file: { area: 'files', reads: true } },
  members: Type.Object(
    {
      destination_kind: Type.Enum(['config', 'storage']),
      destination_path: Type.Optional(Type.String()),
      file: Type.Optional(Type.String()),
      url: Type.Optional(Type.String()),
      mode: Type.Optional(Type.Enum(['link', 'site'])),
      max_pages: Type.Optional(Type.Integer({ minimum: 1 })),
      schema: Type.Optional(mapOf(Type.Unknown())),
      instructions: Type.Optional(Type.String()),
      model: Type.Optional(Type.String()),
      agent: Type.Optional(Type.String()),
      org: Type.Optional(Type.String()),
    },
    { additionalProperties: false },
  ),
  nests: true,
  work: {
    style: 'prepared',
    timeoutSeconds: 3_600,
    prepare: (members, context) => context.services.prepareExtraction(members, context.signal),
  },
});
