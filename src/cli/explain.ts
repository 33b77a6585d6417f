import { BackupError } from '../backup/error.ts';
import { CellRefused } from '../cells/identity.ts';
import { MoveError } from '../cells/move/errors.ts';
import { ConfigError } from '../config/config.ts';
import { DirectoryLockedError } from '../db/directory-lock.ts';
import { SchemaMismatchError } from '../db/migrate.ts';
import { EmbeddedPostgresError } from '../db/postgres-error.ts';
import { BlobStoreMismatchError } from '../files/store-identity.ts';
import { AddOnMissing } from '../lib/add-ons.ts';
import { redact } from '../lib/log.ts';

/** Errors whose message needs no stack. */
const plain = [
  AddOnMissing,
  ConfigError,
  DirectoryLockedError,
  EmbeddedPostgresError,
  SchemaMismatchError,
  BackupError,
  BlobStoreMismatchError,
  CellRefused,
  MoveError,
];

/** Describes an error for the person who ran the command: what is wrong and how to fix it. */
export function describeError(error: unknown): string {
  if (plain.some((kind) => error instanceof kind)) return (error as Error).message;
  const { code, port, address, path } = error as { code?: string; port?: number; address?: string; path?: string };
  if (code === 'EADDRINUSE')
    return `Port ${port} on ${address} is in use by another program. Stop it, or choose another port with PORT (PORT=0 picks any free one).`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `This machine has no address ${address ?? ''}. Set HOST to one of its addresses, or leave it unset.`;
  if (code === 'EACCES' && port !== undefined)
    return `This user may not use port ${port}. Choose one above 1023 with PORT.`;
  if (code === 'EACCES' || code === 'EROFS')
    return `${path ?? 'The data directory'} is not writable by this user. Change its owner, or set QUARRY_DATA_DIR.`;
  if (code === 'ENOSPC') return 'The disk is full. Free up space and start again.';
  if (typeof code === 'string' && /^(ECONNREFUSED|CONNECT_TIMEOUT|CONNECTION_|08)/.test(code))
    return `Cannot connect to the database in DATABASE_URL (${code}). Check that it is running and that the address is right.`;
  if (code === '28P01' || code === '28000') return 'The database rejects the user or password in DATABASE_URL.';
  if (code === '3D000') return 'The database in DATABASE_URL does not exist. Create it first.';
  if (!(error instanceof Error)) return redact(String(error));
  const cause = error.cause instanceof Error ? `\n  caused by: ${error.cause.message}` : '';
  // An unexpected error: a bug report needs its stack.
  return redact(error.cause === undefined ? (error.stack ?? error.message) : `${error.message}${cause}`);
}
