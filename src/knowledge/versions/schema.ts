import { ref, strict } from '../../http/route/route.ts';
import { mapOf } from '../../lib/map-schema.ts';
import { Type } from '../../lib/type.ts';

const optionalText = (description: string) => Type.Optional(Type.String({ description }));

const days = { minimum: 1, maximum: 3_650 };
const retentionText =
  'For how many days versions of documents are kept after they were changed or deleted. By default, none are kept.';

/** How long a source keeps versions: in the body that creates it, in one that changes it, and in responses. */
export const retentionInput = Type.Optional(Type.Integer({ ...days, description: retentionText }));
export const retentionChange = Type.Optional(
  Type.Union([Type.Integer(days), Type.Null()], {
    description: `${retentionText} A shorter time applies to existing versions too; null deletes them.`,
  }),
);
export const retentionMembers = {
  version_retention_days: Type.Optional(
    Type.Integer({ description: 'For how many days old versions of documents are kept. Absent: none are kept.' }),
  ),
  versions_from: Type.Optional(
    Type.String({ description: 'When the source began to keep versions. What was before is not known.' }),
  ),
};

/** The version of a document; absent unless its source keeps versions. */
export const versionMember = Type.Optional(
  Type.Integer({ description: 'The version of the document. Absent if its source keeps none.' }),
);

const versionMembers = {
  document: Type.String({ description: 'cdo_…' }),
  source: Type.String({ description: 'cso_…' }),
  version: Type.Integer({ description: 'Its number. The first version of a document is 1.' }),
  current: Type.Boolean({ description: 'Whether the document is so now.' }),
  title: optionalText('The title then.'),
  metadata: mapOf(Type.Unknown(), { description: 'The metadata then.' }),
  content_type: optionalText('The media type of what it was read from.'),
  content_hash: Type.String({ description: 'The SHA-256 of its text, in hexadecimal.' }),
  total_lines: Type.Integer({ description: 'The lines of its text.' }),
  total_size: Type.Integer({ description: 'The bytes of its text.' }),
  source_url: optionalText('Where it came from.'),
  external_id: optionalText('Its id where it came from.'),
  created_at: Type.String({ description: 'When it became the current version.' }),
  replaced_at: optionalText('When the next version replaced it.'),
  deleted_at: optionalText('When the document was deleted, if that ended this version.'),
};

const versionSchema = Type.Object(versionMembers, {
  $id: 'KnowledgeDocumentVersion',
  description: 'What a document was at a time.',
});

export const versionContentSchema = Type.Object(
  {
    ...versionMembers,
    content: Type.String({ description: 'Its text, or a slice of it.' }),
    unit: optionalText('The unit of the slice.'),
    offset: Type.Optional(Type.Integer({ description: 'The offset that was asked for.' })),
    limit: Type.Optional(Type.Integer({ description: 'The limit that was asked for.' })),
    start_line: Type.Optional(Type.Integer({ description: 'Its first line.' })),
    end_line: Type.Optional(Type.Integer({ description: 'Its last line.' })),
    start_byte: Type.Optional(Type.Integer({ description: 'Where it begins, in bytes.' })),
    end_byte: Type.Optional(Type.Integer({ description: 'Where it ends; exclusive.' })),
  },
  { $id: 'KnowledgeDocumentVersionContent', description: 'A version with its text.' },
);

export const comparisonQuery = Type.Object({
  base: Type.Optional(
    Type.Integer({
      ...{ minimum: 1, maximum: 2_147_483_647 },
      description: 'The version to compare with. By default, the one before.',
    }),
  ),
});

const hunkSchema = Type.Object({
  old_start: Type.Integer({ description: 'The first of these lines in the base, from 1.' }),
  new_start: Type.Integer({ description: 'The first of these lines in the version.' }),
  lines: Type.Array(
    Type.Object({
      type: Type.Enum(['same', 'removed', 'added'], { description: 'Which of the two has the line.' }),
      text: Type.String({ description: 'The line, without its line break.' }),
    }),
    { description: 'Lines that differ, with up to three equal ones around them.' },
  ),
});

export const comparisonSchema = Type.Object(
  {
    document: Type.String({ description: 'cdo_…' }),
    base: Type.Integer({ description: 'The number of the version that was compared with.' }),
    version: Type.Integer({ description: 'The number of the version.' }),
    title: Type.Optional(
      Type.Object(
        { before: optionalText('The title of the base.'), after: optionalText('The title of the version.') },
        { description: 'Only if they differ.' },
      ),
    ),
    metadata: Type.Array(Type.String(), { description: 'The members of the metadata that differ.' }),
    removed_lines: Type.Integer({ description: 'How many lines only the base has.' }),
    added_lines: Type.Integer({ description: 'How many lines only the version has.' }),
    hunks: Type.Array(hunkSchema, { description: 'What differs, in the order of the text.' }),
    truncated: Type.Boolean({
      description: 'Whether there is more than fits: at most 5,000 lines and 524,288 characters.',
    }),
  },
  { $id: 'KnowledgeDocumentComparison', description: 'How a version of a document differs from another one.' },
);

const moment = (description: string) => Type.String({ maxLength: 40, description });
const restoredAt = moment('The time, as in `2026-03-01T12:00:00Z`.');

export const restorePlanQuery = Type.Object({ at: restoredAt });

export const restoreSchema = strict({
  at: restoredAt,
  confirm_deletions: Type.Optional(
    Type.Boolean({ description: 'Delete documents even if they are more than half of the source.' }),
  ),
});

export const restorePlanSchema = Type.Object(
  {
    at: Type.String({ description: 'The time.' }),
    documents: Type.Integer({ description: 'How many documents the source has now.' }),
    changed: Type.Integer({ description: 'How many would get an earlier version back.' }),
    created: Type.Integer({ description: 'How many that were deleted since would come back.' }),
    deleted: Type.Integer({ description: 'How many that did not exist then would be deleted.' }),
    unknown: Type.Integer({
      description: 'How many would stay as they are, because their version of that time is no longer kept.',
    }),
  },
  { $id: 'KnowledgeRestorePlan', description: 'What restoring a source to a time would change.' },
);

export const versionRef = ref(versionSchema);
