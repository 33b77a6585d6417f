import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSources, type Source } from '../support/source.ts';

/** What refuses for a full quota by itself, with the place that counts exactly. */
const counted: Record<string, string> = {
  'src/tenancy/room.ts': 'counts under a lock',
  'src/tenancy/quotas.ts': 'app_use in migrations/0002_limits.sql counts under a lock',
  'src/kv/writes.ts': 'a trigger of kv_entries counts in the row of the user',
  'src/idempotency/service.ts': 'a trigger of idempotency_records counts in the rows of the space and the caller',
  'src/extractions/structure/job.ts': 'tells the error apart',
};
const refusers = (sources: Source[]) =>
  sources.filter(({ text }) => /'quota_exceeded'/.test(text)).map(({ name }) => name);

test('only counts that concurrent callers cannot exceed refuse for a full quota', () => {
  assert.deepEqual(refusers(readSources('src')).toSorted(), Object.keys(counted).toSorted(), 'use requireRoom');
  assert.deepEqual(refusers([{ name: 'a', text: "throw new AppError('quota_exceeded', 'Full.')" }]), ['a']);
});
