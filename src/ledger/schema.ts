import { integerRange } from '../http/route/validation.ts';
import { Type } from '../lib/type.ts';

const hex = (description: string) => Type.String({ description: `${description}, in hexadecimal.` });
const orNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description });

export const ledgerHeadSchema = Type.Object(
  {
    app: Type.String({ description: 'dap_…' }),
    sandbox: Type.String({ description: 'sbx_…' }),
    segment: Type.Integer({ description: 'The number of the segment, from 1.' }),
    kind: Type.Enum(['start', 'audit', 'runs', 'retention', 'deletion']),
    sealed_at: Type.String({ description: 'When it was sealed, in UTC with microseconds.' }),
    records: Type.Integer({ description: 'The number of records that it lists.' }),
    last_at: orNull('The time of the newest record.'),
    list_digest: hex('The digest of its list of records'),
    detail: orNull('What retention or a deletion removes, as JSON text.'),
    previous: hex('The digest of the previous segment'),
    key_id: Type.String({ description: 'The id of the key that signed it.' }),
    public_key: hex('The public key, an Ed25519 key of 32 bytes'),
    signature: hex('Ed25519 over the fields above'),
    digest: hex('The SHA-256 of the fields above'),
  },
  {
    $id: 'LedgerHead',
    description: 'A segment with everything that its signature covers. The guide "Verify" describes the bytes.',
  },
);

export const ledgerVerificationSchema = Type.Object(
  {
    problems: Type.Array(
      Type.Object({
        kind: Type.Enum([
          ...['changed', 'removed', 'inserted', 'moved', 'segment_changed', 'segment_removed'],
          ...['signature', 'head', 'truncated'],
        ] as const),
        chain: Type.String({ description: 'The ledger or the journal of a run.' }),
        record: Type.Optional(Type.String({ description: 'The id of the record; for a journal, the sequence.' })),
        segment: Type.Optional(Type.Integer()),
        message: Type.String(),
      }),
    ),
    counts: Type.Object({
      segments: Type.Integer(),
      records: Type.Integer(),
      runs: Type.Integer(),
      entries: Type.Integer(),
      removed: Type.Integer({
        description: 'Records that retention or a deletion removed, as a signed segment states.',
      }),
      unsealed: Type.Integer({ description: 'Records that are not in a segment yet.' }),
    }),
    next_cursor: Type.Optional(Type.String({ description: 'Absent in the last part.' })),
  },
  { $id: 'LedgerVerification', description: 'The result of one part of a verification.' },
);

export const ledgerQuery = Type.Object({
  segment: Type.Optional(
    Type.Integer({
      ...integerRange,
      minimum: 1,
      description: 'Returns the segment with this number instead of the newest one.',
    }),
  ),
});

export const verificationQuery = Type.Object({
  cursor: Type.Optional(Type.String({ maxLength: 100, description: 'The `next_cursor` of the previous part.' })),
});
