import { pageQuery } from '../http/route/pages.ts';
import { freeMap, ref, strict } from '../http/route/route.ts';
import { jsonBytes } from '../http/route/validation.ts';
import { limits } from '../lib/limits.ts';
import { mapOf } from '../lib/map-schema.ts';
import { pattern } from '../lib/patterns.ts';
import { Type } from '../lib/type.ts';
import { mediaTypePattern } from './media-types.ts';
import { type PictureRequest, pictureFormats, picturePageMax, pictureWidths } from './picture-request.ts';

export const imageSourceSchema = Type.Object(
  {
    file: Type.Optional(Type.String()),
    url: Type.Optional(Type.String()),
    refresh_url: Type.Optional(Type.String({ description: 'Where to get a new `url` after this one has expired.' })),
    mime_type: Type.Optional(Type.String()),
    width: Type.Optional(Type.Integer({ description: 'The width in pixels.' })),
    height: Type.Optional(Type.Integer({ description: 'The height in pixels.' })),
  },
  { $id: 'ImageSource', description: 'An image and where to fetch it.' },
);

const principalTypes = ['user', 'team', 'org', 'org_role', 'agent', 'everyone'] as const;

const principal = Type.Optional(
  Type.String({ description: 'An id, or the role for `org_role`. Omit it for `everyone`.' }),
);

const grantSchema = strict(
  {
    principal_type: Type.Enum(principalTypes),
    principal,
    actions: Type.Array(Type.String({ minLength: 1, maxLength: 100 }), { minItems: 1, maxItems: 20 }),
  },
  { $id: 'Grant', description: 'What one principal may do with a file.' },
);

const removalSchema = strict(
  { principal_type: Type.Enum(principalTypes), principal },
  { $id: 'GrantRemoval', description: 'A principal whose grant is removed.' },
);

const grantList = Type.Array(ref(grantSchema), { maxItems: limits.aclGrantsMax });

export const aclInputSchema = strict(
  {
    grants: Type.Optional(grantList),
    add: Type.Optional(grantList),
    remove: Type.Optional(Type.Array(ref(removalSchema), { maxItems: limits.aclGrantsMax })),
  },
  {
    $id: 'AclInput',
    ...jsonBytes(limits.metadataBytesMax),
    description: 'Either `grants`, which replaces the list, or `add` and `remove`, which change it.',
  },
);

export const fileSchema = Type.Object(
  {
    id: Type.String({ description: 'fil_…' }),
    filename: Type.String(),
    content_type: Type.String(),
    size: Type.Integer({ description: 'The size in bytes.' }),
    checksum: Type.String({ description: 'SHA-256 of the contents, in hex.' }),
    url: Type.String({ description: 'Signed download URL, valid for one hour.' }),
    picture_url: Type.Optional(
      Type.String({ description: 'Signed URL of a small picture, if the request asked for one and the type has one.' }),
    ),
    share_url: Type.Optional(Type.String({ description: 'Public URL that works while sharing is on.' })),
    shared: Type.Boolean(),
    image_source: Type.Optional(ref(imageSourceSchema)),
    app: Type.String(),
    org: Type.Optional(Type.String()),
    team: Type.Optional(Type.String()),
    user: Type.Optional(Type.String()),
    agent: Type.Optional(Type.String()),
    sandbox: Type.Optional(Type.String()),
    acl: Type.Optional(Type.Object({ grants: Type.Array(ref(grantSchema)) })),
    provider_metadata: mapOf(Type.Unknown()),
    created_at: Type.String(),
    updated_at: Type.String(),
  },
  { $id: 'StoredFile', description: 'A stored file.' },
);

const filename = Type.String({
  minLength: 1,
  maxLength: limits.nameCharactersMax,
  description: 'The filename with its extension.',
});
const contentType = Type.String({ maxLength: 255, ...mediaTypePattern, description: 'MIME type.' });

const owners = {
  agent: Type.Optional(Type.String({ description: 'Associated agent, whose org owns the file.' })),
  org: Type.Optional(Type.String({ description: 'Default: the caller’s.' })),
  team: Type.Optional(Type.String({ description: 'Owner; takes precedence over `user`.' })),
  user: Type.Optional(Type.String({ description: 'Owner. Default: the calling user, unless a team is named.' })),
};
/** Filters of a list by owner. */
const ownerFilters = {
  agent: Type.Optional(Type.String({ description: 'Only files of this agent (agt_…).' })),
  org: Type.Optional(Type.String({ description: 'Only files of this organisation (org_…).' })),
  team: Type.Optional(Type.String({ description: 'Only files of this team (tem_…).' })),
  user: Type.Optional(Type.String({ description: 'Only files of this user (usr_…).' })),
};
const share = Type.Optional(Type.Boolean({ description: 'Make the file public at a permanent URL. Images only.' }));

const maker = Type.Optional(
  Type.String({
    description:
      'The run (atr_…) that made the file, for programs that execute runs: the file goes with the run if its retention says so. Requires a secret key or a developer token.',
  }),
);

export const fileCreateSchema = strict({
  filename,
  content_type: contentType,
  data: Type.String({ description: 'The contents in base64 (RFC 4648, section 4).' }),
  acl: Type.Optional(ref(aclInputSchema)),
  ...owners,
  share,
  automation_run: maker,
});

/** The query of a raw upload; name, type and digest are headers. */
export const rawUploadQuery = Type.Object({ ...owners, share, automation_run: maker });

export const uploadLinkCreateSchema = strict({
  filename,
  content_type: contentType,
  size: Type.Optional(Type.Integer({ minimum: 0, description: 'Maximum number of bytes.' })),
  checksum: Type.Optional(
    Type.String({
      ...pattern('^[0-9A-Fa-f]{64}$', 'must be a SHA-256: 64 hexadecimal digits'),
      description: 'Expected SHA-256 in hex.',
    }),
  ),
  expires_in: Type.Optional(
    Type.Integer({ minimum: 1, maximum: limits.uploadLinkSecondsMax, description: 'Seconds. Default 3600.' }),
  ),
  ...owners,
  share,
  automation_run: maker,
});

export const uploadLinkSchema = Type.Object(
  {
    file: Type.String({ description: 'The id that the file will have.' }),
    method: Type.Literal('PUT'),
    url: Type.String({ description: 'Accepts the bytes once, without any other credential.' }),
    expires_at: Type.String(),
  },
  { $id: 'UploadLink', description: 'A URL for uploading one file without a credential.' },
);

const pictureWidth = (description: string) =>
  Type.Unsafe<PictureRequest['width']>({ type: 'integer', enum: [...pictureWidths], description });

/** A request for `picture_url`. */
const pictureQuery = {
  width: Type.Optional(
    pictureWidth('Adds `picture_url` to pictures and PDFs. The small picture is at most this many pixels wide.'),
  ),
  format: Type.Optional(Type.Enum(pictureFormats, { description: 'Format of `picture_url`. Default `webp`.' })),
};

/** The same for one file, of which any page may be shown. */
export const filePictureQuery = {
  ...pictureQuery,
  page: Type.Optional(
    Type.Integer({
      ...{ minimum: 1, maximum: picturePageMax },
      description: 'The page of a PDF that `picture_url` shows, from 1. Default 1.',
    }),
  ),
};

/** The query of a signed `picture_url`. */
export const signedPictureQuery = Type.Object({
  width: pictureWidth('Maximum width in pixels.'),
  format: Type.Enum(pictureFormats),
  page: Type.Optional(Type.Integer({ description: 'The page of a PDF. Default 1.' })),
  expires: Type.Integer(),
  signature: Type.String(),
});

export const fileListQuery = Type.Object({
  ...pageQuery,
  ...pictureQuery,
  ...ownerFilters,
  content_type: Type.Optional(Type.String({ description: 'A MIME type, or a family such as `image/*`.' })),
  prefix: Type.Optional(
    Type.String({
      maxLength: limits.nameCharactersMax,
      description: 'Only names with this prefix, such as `reports/`.',
    }),
  ),
  automation_run: Type.Optional(
    Type.String({
      description:
        'Only files that this run (atr_…) made: with its nodes, by uploads that named it, and by the extractions that it started. A key needs `automations:read`, too.',
    }),
  ),
  sort: Type.Optional(
    Type.Enum(['created_at', '-created_at', 'filename', '-filename', 'size', '-size'], {
      description: 'The order; with `-`, the largest or newest first. Default `-created_at`.',
    }),
  ),
  search: Type.Optional(Type.String({ description: 'Part of the filename, case-insensitive.' })),
});

export const fileUpdateSchema = strict({
  filename: Type.Optional(filename),
  provider_metadata: Type.Optional(freeMap('Replaces the whole map.')),
  share: Type.Optional(Type.Boolean()),
  acl: Type.Optional(ref(aclInputSchema)),
});

/** A picture of an agent or an org in a request. */
export const pictureSchema = strict(
  {
    data: Type.String({ description: 'The image in base64.' }),
    filename,
    mime_type: Type.String({ maxLength: 255, ...mediaTypePattern, description: 'image/…' }),
  },
  { $id: 'Picture', description: 'An image to store.' },
);
