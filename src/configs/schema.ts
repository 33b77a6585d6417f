import { Type } from 'typebox';

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
