import { mediaTypePattern } from '../files/media-types.ts';
import { strict } from '../http/route/route.ts';
import { limits } from '../lib/limits.ts';
import { Type } from '../lib/type.ts';

const optionalText = Type.Optional(Type.String());

export const configSchema = Type.Object(
  {
    id: Type.String({ description: 'cfg_…' }),
    virtual_path: Type.String(),
    content_type: Type.String(),
    content: optionalText,
    version: Type.Integer({ description: 'The version number, from 1.' }),
    current_version: Type.Object({
      id: Type.String({ description: 'cfv_…' }),
      version_number: Type.Integer(),
      content_hash: Type.String({ description: 'SHA-256 in hex.' }),
      created_at: Type.String(),
    }),
    file: Type.String(),
    org: optionalText,
    agent: optionalText,
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'ConfigEntry', description: 'A versioned text at a virtual path.' },
);

export const configWriteSchema = strict({
  agent: Type.Optional(Type.String({ description: 'The agent (agt_…) that owns the path.' })),
  org: Type.Optional(Type.String({ description: 'The organisation (org_…) that owns the path.' })),
  content: Type.String({
    maxLength: limits.configTextBytesMax,
    description: `The text, of at most ${limits.configTextBytesMax} bytes in UTF-8.`,
  }),
  content_type: Type.Optional(
    Type.String({ maxLength: 255, ...mediaTypePattern, description: 'Its media type. Default `text/plain`.' }),
  ),
  if_version: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 2_147_483_646,
      description: 'Write only if this is the current version; 0: only if the path does not exist. Otherwise 412.',
    }),
  ),
});
