import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { BackupError } from './error.ts';

/** One file of the archive, as it lies there. */
const Part = Type.Object({ name: Type.String(), bytes: Type.Integer(), sha256: Type.String() });

const Rows = Type.Object({
  name: Type.String(),
  columns: Type.Array(Type.String()),
  rows: Type.Integer(),
  parts: Type.Array(Part),
});

/** What `manifest.json` of a backup says. docs/self-hosting.md describes the whole archive. */
const manifestSchema = Type.Object({
  format: Type.Literal(1),
  /** Of this backup, to know it again when a restore goes on. */
  id: Type.String(),
  /** The release that took it. */
  quarry: Type.String(),
  postgres: Type.String(),
  taken_at: Type.String(),
  migrations: Type.Array(Type.Object({ version: Type.Integer(), name: Type.String(), checksum: Type.String() })),
  tables: Type.Array(Rows),
  jobs: Rows,
  sequences: Type.Array(Type.Object({ name: Type.String(), last_value: Type.String(), is_called: Type.Boolean() })),
  blobs: Type.Object({ count: Type.Integer(), bytes: Type.Integer(), parts: Type.Array(Part) }),
  /** A known text, wrapped by the root secret that everything in the rows is wrapped by. */
  secret_proof: Type.String(),
  /** The root secret itself, when it was asked for. */
  secret: Type.Optional(Part),
});

export type Part = Static<typeof Part>;
export type RowsEntry = Static<typeof Rows>;
export type Manifest = Static<typeof manifestSchema>;

export const manifestName = 'manifest.json';
export const manifestSumName = 'manifest.sha256';
/** What `secret_proof` holds, unwrapped. */
export const secretProofText = 'quarry backup';

/** The two files that make a directory a backup: written last. The second is in the format of `sha256sum -c`. */
export function writtenManifest(manifest: Manifest): { text: string; sum: string } {
  const text = `${JSON.stringify(manifest, null, 2)}\n`;
  return { text, sum: `${createHash('sha256').update(text).digest('hex')}  ${manifestName}\n` };
}

/** Throws BackupError when the directory holds no whole backup of a format that this release reads. */
export async function readManifest(directory: string): Promise<Manifest> {
  const [text, sum] = await Promise.all([
    readFile(join(directory, manifestName), 'utf8').catch(() => undefined),
    readFile(join(directory, manifestSumName), 'utf8').catch(() => undefined),
  ]);
  if (text === undefined || sum === undefined)
    throw new BackupError(`${directory} is no whole backup: ${manifestName} or ${manifestSumName} is missing.`);
  if (createHash('sha256').update(text).digest('hex') !== sum.slice(0, 64))
    throw new BackupError(`${manifestName} is damaged: its SHA-256 is not the one in ${manifestSumName}.`);
  const value: unknown = JSON.parse(text);
  if (typeof value === 'object' && value !== null && 'format' in value && value.format !== 1)
    throw new BackupError(`This release does not read backups of format ${String(value.format)}.`);
  if (!Value.Check(manifestSchema, value)) throw new BackupError(`${manifestName} is not what a backup has.`);
  return value;
}
