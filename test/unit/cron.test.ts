import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkSchedule, latestTick, nextTick, ScheduleError } from '../../src/lib/cron.ts';

const at = (text: string) => new Date(text);

test('the next tick is in the schedule’s own time zone, daylight saving included', () => {
  assert.deepEqual(nextTick('30 2 * * *', 'UTC', at('2026-01-01T02:30:00Z')), at('2026-01-02T02:30:00Z'));
  assert.deepEqual(nextTick('0 9 * * 1-5', 'Europe/Berlin', at('2026-01-02T12:00:00Z')), at('2026-01-05T08:00:00Z'));
  assert.deepEqual(nextTick('0 9 * * *', 'Europe/Berlin', at('2026-07-01T12:00:00Z')), at('2026-07-02T07:00:00Z'));
  assert.equal(nextTick('0 0 31 2 *', 'UTC', at('2026-01-01T00:00:00Z')), undefined);
});

test('of the missed ticks only the latest runs', () => {
  const hourly = (after: string, until: string) => latestTick('0 * * * *', 'UTC', at(after), at(until));
  assert.deepEqual(hourly('2026-01-01T00:00:00Z', '2026-01-09T05:30:00Z'), at('2026-01-09T05:00:00Z'));
  assert.deepEqual(hourly('2026-01-01T00:00:00Z', '2026-01-01T01:00:00Z'), at('2026-01-01T01:00:00Z'));
  assert.equal(hourly('2026-01-01T01:00:00Z', '2026-01-01T01:00:30Z'), undefined);
});

test('sources also accept seconds, years and names, and no timestamp', () => {
  const next = (schedule: string) => nextTick(schedule, 'UTC', at('2026-01-01T00:00:00Z'), 'extended');
  assert.deepEqual(next('@daily'), at('2026-01-02T00:00:00Z'));
  assert.deepEqual(next('30 0 * * * *'), at('2026-01-01T00:00:30Z'));
  assert.throws(() => next('2026-05-01T00:00:00'), ScheduleError);
});

test('an invalid schedule or time zone is refused with the reason', () => {
  for (const schedule of ['', '* * * *', '* * * * * *', '61 * * * *', 'every day at noon ok'])
    assert.throws(() => checkSchedule(schedule, 'UTC'), ScheduleError, schedule);
  assert.throws(() => checkSchedule('* * * * *', 'Mars/Olympus'), /time zone/);
});
