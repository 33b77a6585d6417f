import type { Db, Statement } from '../db/database.ts';

/** SQL: the user `u` has this address. ASCII letters in upper case are the same as in lower case; other letters are not. */
export function hasEmail(db: Db, email: string): Statement {
  return db`u.email_folded = lower(${email}::text collate "C")`;
}

/** The same folding, for what is counted outside of PostgreSQL. */
export function foldEmail(email: string): string {
  return email.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
