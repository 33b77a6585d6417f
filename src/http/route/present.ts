import { production } from '../../db/database.ts';
import { formatId } from '../../lib/ids.ts';

/** ISO 8601 in UTC with milliseconds: the format of every timestamp in a response. */
export function iso(date: Date): string {
  const ms = date.getTime();
  const day = Math.floor(ms / dayMs);
  // Most times of a response are of the same day, and `toISOString` takes three times as long as the rest of this.
  if (day !== last.day) last = { day, text: date.toISOString().slice(0, -'00:00:00.000Z'.length) };
  const rest = ms - day * dayMs;
  const seconds = Math.floor(rest / 1_000);
  const minutes = Math.floor(seconds / 60);
  const thousandths = String(rest - seconds * 1_000).padStart(3, '0');
  return `${last.text}${pairs[Math.floor(minutes / 60)]}:${pairs[minutes % 60]}:${pairs[seconds % 60]}.${thousandths}Z`;
}

const dayMs = 24 * 3_600_000;
const pairs = Array.from({ length: 60 }, (_pair, number) => String(number).padStart(2, '0'));
let last = { day: Number.NaN, text: '' };

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
