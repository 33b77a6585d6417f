import { production } from '../../db/database.ts';
import { formatId } from '../../lib/ids.ts';

/** ISO 8601 in UTC with milliseconds: the format of every timestamp in a response. */
export function iso(date: Date): string {
  return date.toISOString();
}

type Compact<T> = { [K in keyof T as null extends T[K] ? never : undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as null extends T[K] ? K : undefined extends T[K] ? K : never]?: NonNullable<T[K]>;
};

/** Omits members without a value. The schemas that clients know have absent members, not null. */
export function compact<T extends Record<string, unknown>>(members: T): Compact<T> {
  return Object.fromEntries(
    Object.entries(members).filter(([, value]) => value !== null && value !== undefined),
  ) as Compact<T>;
}

/** The sandbox id of a row; null for production. */
export function presentSandboxId(sandboxId: string): string | null {
  return sandboxId === production ? null : formatId('sandbox', sandboxId);
}
