import { fileCreateSchema } from '../files/schema.ts';
import { pageQuery } from '../http/route/pages.ts';
import { freeMap, strict } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';

const { data: _data, ...fileMembers } = fileCreateSchema.properties;

/** The members of a file that Upload-Metadata may name. */
export const uploadedFileSchema = strict({
  ...fileMembers,
  provider_metadata: Type.Optional(freeMap('Stored with the file.')),
});

export const uploadSchema = Type.Object(
  {
    id: Type.String({ description: 'upl_…' }),
    file: Type.String({ description: 'The id of the file, which exists once the upload is finished.' }),
    state: Type.Enum(['uploading', 'finished']),
    filename: Type.String(),
    content_type: Type.String(),
    offset: Type.Integer({ description: 'The number of bytes stored.' }),
    length: Type.Integer({ description: 'The size of the whole file in bytes.' }),
    sandbox: Type.Optional(Type.String()),
    user: Type.Optional(Type.String({ description: 'The user who created it.' })),
    created_at: Type.String(),
    expires_at: Type.String({ description: 'When an unfinished upload is deleted.' }),
  },
  { $id: 'Upload', description: 'A resumable upload.' },
);

export const uploadListQuery = Type.Object({ ...pageQuery });
