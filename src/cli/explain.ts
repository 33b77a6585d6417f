import { BackupError } from '../backup/error.ts';
import { ConfigError } from '../config.ts';
import { DirectoryLockedError } from '../db/directory-lock.ts';
import { SchemaMismatchError } from '../db/migrate.ts';
import { EmbeddedPostgresError } from '../db/postgres-error.ts';
import { BlobStoreMismatchError } from '../files/store-identity.ts';
import { redact } from '../log.ts';

/** Errors whose message is all that there is to say. */
const plain = [
  ConfigError,
  DirectoryLockedError,
  EmbeddedPostgresError,
  SchemaMismatchError,
  BackupError,
  BlobStoreMismatchError,
];

/** An error in words for whoever typed the command: what is wrong and how to mend it. */
export function explain(error: unknown): string {
  if (plain.some((kind) => error instanceof kind)) return (error as Error).message;
  const { code, port, address, path } = error as { code?: string; port?: number; address?: string; path?: string };
  if (code === 'EADDRINUSE')
    return `Port ${port} on ${address} is taken by another program. Stop it, or choose another with PORT (PORT=0 takes any free one).`;
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return `This machine has no address ${address ?? ''}. Set HOST to one of its own, or leave it unset.`;
  if (code === 'EACCES' && port !== undefined)
    return `Port ${port} may not be used by this user. Choose one above 1023 with PORT.`;
  if (code === 'EACCES' || code === 'EROFS')
    return `${path ?? 'The data directory'} cannot be written by this user. Change its owner, or set QUARRY_DATA_DIR.`;
  if (code === 'ENOSPC') return 'The disk is full. Make room and start again.';
  if (typeof code === 'string' && /^(ECONNREFUSED|CONNECT_TIMEOUT|CONNECTION_|08)/.test(code))
    return `The database that DATABASE_URL names cannot be reached (${code}). Is it running, and is the address right?`;
  if (code === '28P01' || code === '28000')
    return 'The database refuses the user or password of DATABASE_URL. Correct it there.';
  if (code === '3D000') return 'The database that DATABASE_URL names does not exist. Create it first.';
  if (!(error instanceof Error)) return redact(String(error));
  const cause = error.cause instanceof Error ? `\n  because: ${error.cause.message}` : '';
  // An error that nobody foresaw: its stack is what a report needs.
  return redact(error.cause === undefined ? (error.stack ?? error.message) : `${error.message}${cause}`);
}
