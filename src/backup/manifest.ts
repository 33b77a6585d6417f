import { hash } from 'node:crypto';
import type { Static } from 'typebox';
import { Value } from 'typebox/value';
import { Type } from '../lib/type.ts';
import type { Archive } from './archive.ts';
import { BackupError } from './error.ts';

/** One file of the archive. Its name never leads out of it: no part of a path begins with a dot. */
const Part = Type.Object({
  name: Type.String({ pattern: '^(?:[\\w-]+/)*[\\w-]+(?:\\.[\\w-]+)*$' }),
  bytes: Type.Integer(),
  sha256: Type.String(),
});

const Rows = Type.Object({
  name: Type.String(),
  columns: Type.Array(Type.String()),
  rows: Type.Integer(),
  parts: Type.Array(Part),
});

/** The contents of `manifest.json`. docs/self-hosting.md describes the whole archive. */
const manifestSchema = Type.Object({
  format: Type.Literal(1),
  /** Identifies the backup when a restore resumes. */
  id: Type.String(),
  /** The release that took it. */
  quarry: Type.String(),
  postgres: Type.String(),
  taken_at: Type.String(),
  /** Which database of an installation with cells it is; null for a directory that is not a cell. */
  cell: Type.Optional(Type.Object({ installation: Type.String(), name: Type.Union([Type.String(), Type.Null()]) })),
  migrations: Type.Array(Type.Object({ version: Type.Integer(), name: Type.String(), checksum: Type.String() })),
  tables: Type.Array(Rows),
  jobs: Rows,
  sequences: Type.Array(Type.Object({ name: Type.String(), last_value: Type.String(), is_called: Type.Boolean() })),
  blobs: Type.Object({ count: Type.Integer(), bytes: Type.Integer(), parts: Type.Array(Part) }),
  /** A known text, wrapped by the same root secret as the values in the rows. */
  secret_proof: Type.String(),
  /** The root secret itself, with --include-secret. */
  secret: Type.Optional(Part),
});

export type Part = Static<typeof Part>;
export type RowsEntry = Static<typeof Rows>;
export type Manifest = Static<typeof manifestSchema>;

export const manifestName = 'manifest.json';
export const manifestSumName = 'manifest.sha256';
/** The plain text of `secret_proof`. */
export const secretProofText = 'quarry backup';

/** The two files written last, which complete a backup. The second is in the format of `sha256sum -c`. */
export function formatManifest(manifest: Manifest): { text: string; sum: string } {
  const text = `${JSON.stringify(manifest, null, 2)}\n`;
  return { text, sum: `${hash('sha256', text)}  ${manifestName}\n` };
}

/** Throws BackupError unless the archive holds a complete backup in a format that this release reads. */
export async function readManifest(archive: Archive): Promise<Manifest> {
  const [text, sum] = await Promise.all([
    archive.read(manifestName).then((bytes) => bytes?.toString('utf8')),
    archive.read(manifestSumName).then((bytes) => bytes?.toString('utf8')),
  ]);
  if (text === undefined || sum === undefined)
    throw new BackupError(
      `${archive.name} is not a complete backup: ${manifestName} or ${manifestSumName} is missing.`,
    );
  if (hash('sha256', text) !== sum.slice(0, 64))
    throw new BackupError(`${manifestName} is damaged: its SHA-256 is not the one in ${manifestSumName}.`);
  const value: unknown = JSON.parse(text);
  if (typeof value === 'object' && value !== null && 'format' in value && value.format !== 1)
    throw new BackupError(`This release does not read backups of format ${String(value.format)}.`);
  if (!Value.Check(manifestSchema, value)) throw new BackupError(`${manifestName} is not a valid backup manifest.`);
  return value;
}
