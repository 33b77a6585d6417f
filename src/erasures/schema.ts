import { strict } from '../http/route/route.ts';
import { mapOf } from '../lib/map-schema.ts';
import { Type } from '../lib/type.ts';

/** The erasures that production or a sandbox keeps, and those of them that may run at a time. */
export const erasuresMax = 100_000;
export const runningErasuresMax = 100;

export const subjectKinds = ['user', 'document', 'source'] as const;
export type SubjectKind = (typeof subjectKinds)[number];

const subject = {
  user: Type.Optional(Type.String({ description: 'usr_…' })),
  document: Type.Optional(Type.String({ description: 'cdo_…' })),
  source: Type.Optional(Type.String({ description: 'cso_…' })),
};
const removed = mapOf(Type.Integer(), {
  description: 'How many of each kind were deleted, such as documents, chunks, postings, vectors, files and runs.',
});
const requestedAt = Type.String({ description: 'When the erasure was ordered.' });

export const erasureCreateSchema = strict({
  ...subject,
  files: Type.Optional(
    Type.Boolean({
      description:
        'Whether the files that the documents were read from are erased too. Default false. Those of a user always are.',
    }),
  ),
});

export const erasureSchema = Type.Object(
  {
    id: Type.String({ description: 'ers_…' }),
    app: Type.String(),
    sandbox: Type.Optional(Type.String()),
    ...subject,
    files: Type.Boolean({ description: 'Whether files of documents are erased too.' }),
    status: Type.Enum(['running', 'done'], { description: '`done`: the certificate can be read.' }),
    removed,
    created_at: requestedAt,
    completed_at: Type.Optional(Type.String()),
  },
  { $id: 'Erasure', description: 'An order to erase a user, a document or a source, and what was deleted so far.' },
);

const remainsSchema = Type.Object({
  what: Type.String({ description: 'What remains, such as `audit_entries` or `backups`.' }),
  where: Type.String({ description: 'In which part of the installation.' }),
  until: Type.Optional(
    Type.String({ description: 'The last day on which it may be there. Absent: the server sets no such day.' }),
  ),
  note: Type.String({ description: 'What exactly, and how it goes away.' }),
});

const receiverSchema = Type.Object({
  kind: Type.Enum(['model', 'embedder', 'webhook', 'traces', 'origin'], {
    description: '`origin`: where the source read its documents, which still has them.',
  }),
  name: Type.String({ description: 'A model, or the id of a webhook or a source.' }),
  host: Type.Optional(Type.String({ description: 'Where it was sent.' })),
  messages: Type.Optional(Type.Integer({ description: 'Calls or deliveries.' })),
  last_at: Type.Optional(Type.String()),
  certain: Type.Boolean({
    description: 'False if it received data of the app in this time, and may have received this.',
  }),
});

export const certificateSchema = Type.Object(
  {
    statement: Type.Object(
      {
        erasure: Type.String({ description: 'ers_…' }),
        app: Type.String(),
        sandbox: Type.String(),
        ...subject,
        requested_at: requestedAt,
        completed_at: Type.String(),
        covers: Type.String({ description: 'What the erasure covers, and what it does not.' }),
        removed,
        remains: Type.Array(remainsSchema, { description: 'What the server does not delete.' }),
        receivers: Type.Array(receiverSchema, { description: 'Who outside received something of it.' }),
      },
      { description: 'What is signed.' },
    ),
    key_id: Type.String({ description: 'The id of the key that signed it.' }),
    public_key: Type.String({ description: 'The public key, an Ed25519 key of 32 bytes, in hexadecimal.' }),
    signature: Type.String({
      description: 'Ed25519 over the statement, in hexadecimal. The guide "Erasure" describes the bytes.',
    }),
  },
  {
    $id: 'ErasureCertificate',
    description:
      'What an erasure deleted, what remains where, and who received it, signed with the key of the audit log.',
  },
);
