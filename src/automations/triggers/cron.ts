import { Cron } from 'croner';

export class ScheduleError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ScheduleError';
  }
}

/** Throws ScheduleError when the schedule is not a five-field cron expression, or the time zone is unknown. */
export function checkSchedule(schedule: string, timezone: string): void {
  parse(schedule, timezone);
}

/** The first tick after a time; undefined if the schedule has none left (31 February). */
export function nextTick(schedule: string, timezone: string, after: Date): Date | undefined {
  return parse(schedule, timezone).nextRun(after) ?? undefined;
}

/** The latest tick after `after` and at or before `until`, to make up for missed ticks; undefined if there is none. */
export function latestTick(schedule: string, timezone: string, after: Date, until: Date): Date | undefined {
  const justAfter = new Date(until.getTime() + 1_000);
  const tick = parse(schedule, timezone)
    .previousRuns(2, justAfter)
    .find((candidate) => candidate <= until);
  return tick && tick > after ? tick : undefined;
}

function parse(schedule: string, timezone: string): Cron {
  const text = schedule.trim();
  if (text.split(/\s+/).length !== 5) throw new ScheduleError('must have five fields: minute hour day month weekday');
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone });
  } catch {
    // Only an unknown time zone makes the constructor throw here.
    throw new ScheduleError(`is not a known time zone: "${timezone}"`);
  }
  try {
    return new Cron(text, { paused: true, timezone, mode: '5-part' });
  } catch (error) {
    throw new ScheduleError(error instanceof Error ? error.message : 'is not a cron schedule');
  }
}
