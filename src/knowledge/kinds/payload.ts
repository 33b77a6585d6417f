import type { Static, TObject, TSchema } from 'typebox';
import { stemLanguages } from '../../config/values.ts';
import { isStemLanguage, type StemLanguage } from '../../content/terms.ts';
import { nextTick, ScheduleError } from '../../lib/cron.ts';
import { lazyPackage } from '../../lib/lazy-package.ts';
import { wordsOfPattern } from '../../lib/patterns.ts';
import { Type } from '../../lib/type.ts';

const values = lazyPackage<typeof import('typebox/value')>('typebox/value');

/** A source's configuration: the members that its kind knows, and others, which are stored as given. */
export type Payload = Record<string, unknown>;

/** Returns the problem of a URL, or undefined. */
export type UrlCheck = (url: string) => string | undefined;

/** Members of more than one kind. */
export const url = Type.String({ format: 'uri', description: 'http or https.' });
export const schedule = Type.Optional(Type.String({ description: 'Cron expression (UTC) of automatic pulls.' }));
export const language = Type.Optional(Type.String({ description: 'Language for stemming, such as german.' }));

/** The problem of one member of a payload, or undefined. */
export function findProblem(
  member: string,
  schema: TSchema | undefined,
  value: unknown,
  checkUrl: UrlCheck,
): string | undefined {
  switch (member) {
    case 'schedule':
      if (value === null) return undefined;
      if (typeof value !== 'string') return 'must be a cron expression';
      return nextRun(value, new Date(0)) === undefined ? 'is not a cron expression' : undefined;
    case 'language':
      if (value === null || (typeof value === 'string' && isStemLanguage(value))) return undefined;
      return `must be one of ${stemLanguages.join(', ')}`;
    case 'url':
      return typeof value === 'string' ? checkUrl(value) : 'must be a URL';
    default:
      return schema === undefined || values().Check(schema, value) ? undefined : describe(schema);
  }
}

function describe(
  schema: TSchema & { minimum?: number; maximum?: number; type?: string; pattern?: string; maxLength?: number },
): string {
  if (schema.type === 'integer') return `must be an integer from ${schema.minimum} to ${schema.maximum}`;
  if (schema.type === 'array') return 'must be a list of strings';
  if (schema.type === 'boolean') return 'must be true or false';
  if (schema.pattern !== undefined) return wordsOfPattern(schema.pattern) ?? 'is not valid';
  if (schema.maxLength !== undefined) return `must be a text of at most ${schema.maxLength} characters`;
  return 'must be a file id';
}

/** The members that match the schema. A stored payload may predate the current rules. */
export function readPayload<Schema extends TObject>(schema: Schema, payload: Payload | null): Partial<Static<Schema>> {
  const fitting = Object.entries(schema.properties).filter(([member, each]) => values().Check(each, payload?.[member]));
  return Object.fromEntries(fitting.map(([member]) => [member, payload?.[member]])) as Partial<Static<Schema>>;
}

/** When a schedule is next due after this time; undefined if it is invalid or never due. */
export function nextRun(schedule: unknown, after: Date): Date | undefined {
  try {
    return typeof schedule === 'string' ? nextTick(schedule, 'UTC', after, 'extended') : undefined;
  } catch (error) {
    if (error instanceof ScheduleError) return undefined;
    throw error;
  }
}

/** The language of a source's texts, if its payload names one. */
export function payloadLanguage(payload: Payload | null): StemLanguage | undefined {
  const named = payload?.language;
  return typeof named === 'string' && isStemLanguage(named) ? named : undefined;
}
