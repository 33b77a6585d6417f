import { mapOf } from '../../lib/map-schema.ts';
import { Type } from '../../lib/type.ts';
import { defineNode } from './kind.ts';

const content = Type.Object(
  {
    data: Type.String(),
    data_encoding: Type.Optional(Type.Enum(['raw', 'base64'])),
    content_type: Type.Optional(Type.String()),
    filename: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);

/** Ingests into a source, with the body of `POST …/ingest` (queued after an active ingestion), and waits. */
export const ingest = defineNode({
  kind: 'ingest',
  needs: { area: 'knowledge', reads: false },
  memberNeeds: { file: { area: 'files', reads: true } },
  members: Type.Object(
    {
      source: Type.String({ minLength: 1 }),
      content: Type.Optional(content),
      file: Type.Optional(Type.String()),
      pull: Type.Optional(Type.Boolean()),
      title: Type.Optional(Type.String()),
      metadata: Type.Optional(mapOf(Type.Unknown())),
      dedupe: Type.Optional(Type.Boolean()),
      on_active: Type.Optional(Type.Enum(['return', 'queue', 'error'])),
    },
    { additionalProperties: false },
  ),
  nests: true,
  work: {
    style: 'child',
    prepare(members, context) {
      const { source, ...body } = members;
      return context.services.prepareIngestion(source, { ...body, on_active: 'queue' });
    },
  },
});
