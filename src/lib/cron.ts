import { Cron } from 'croner';

export class ScheduleError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ScheduleError';
  }
}

/** Automations have five fields. Sources also accept seconds, years and names such as @daily. */
type Grammar = 'five-fields' | 'extended';

/** Throws ScheduleError when the schedule is not a five-field cron expression, or the time zone is unknown. */
export function checkSchedule(schedule: string, timezone: string): void {
  parse(schedule, timezone);
}

/** The first tick after a time; undefined if the schedule has none left (31 February). */
export function nextTick(schedule: string, timezone: string, after: Date, grammar?: Grammar): Date | undefined {
  return parse(schedule, timezone, grammar).nextRun(after) ?? undefined;
}

/** The latest tick after `after` and at or before `until`, to make up for missed ticks; undefined if there is none. */
export function latestTick(schedule: string, timezone: string, after: Date, until: Date): Date | undefined {
  const justAfter = new Date(until.getTime() + 1_000);
  const tick = parse(schedule, timezone)
    .previousRuns(2, justAfter)
    .find((candidate) => candidate <= until);
  return tick && tick > after ? tick : undefined;
}

/** The library would also accept a timestamp. */
const extendedPattern = /^(?:@\w+|\S+(?:\s+\S+){4,6})$/;

function parse(schedule: string, timezone: string, grammar: Grammar = 'five-fields'): Cron {
  const text = schedule.trim();
  if (grammar === 'five-fields' && text.split(/\s+/).length !== 5)
    throw new ScheduleError('must have five fields: minute hour day month weekday');
  if (!extendedPattern.test(text)) throw new ScheduleError('is not a cron expression');
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone });
  } catch {
    // Only an unknown time zone makes the constructor throw here.
    throw new ScheduleError(`is not a known time zone: "${timezone}"`);
  }
  try {
    return new Cron(text, { paused: true, timezone, mode: grammar === 'five-fields' ? '5-part' : 'auto' });
  } catch (error) {
    throw new ScheduleError(error instanceof Error ? error.message : 'is not a cron schedule');
  }
}
