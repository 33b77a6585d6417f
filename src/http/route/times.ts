import { invalidField } from '../../lib/errors.ts';

/** Parses the time in a query member. 422 on that member unless both PostgreSQL and JavaScript can store it. */
export function readTime(field: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const day = text.slice(0, 10);
  const isWritten = isoTime.test(text);
  if (isWritten && !isDay(day)) throw invalidField(field, `must be a day of the calendar, which has no ${day}`);
  const time = isWritten ? Date.parse(inZone(text)) : Number.NaN;
  if (!(time >= earliestTime && time <= latestTime))
    throw invalidField(field, 'must be an ISO 8601 time between the years 1 and 9999');
  return new Date(time);
}

/** Whether the calendar has the day: JavaScript reads February 30 as March 2. */
function isDay(text: string): boolean {
  const day = new Date(text);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

/** A time without an offset is UTC, like a day, and not in the time zone of the server. */
function inZone(text: string): string {
  return /T[\d:.]+$/.test(text) ? `${text}Z` : text;
}

const isoTime = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:?\d{2})?)?$/;
const earliestTime = Date.parse('0001-01-01T00:00:00Z');
const latestTime = Date.parse('9999-12-31T23:59:59.999Z');
