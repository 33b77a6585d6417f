import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatLogLine, formatTime } from '../../src/cli/develop/readable-log.ts';

const time = '2030-01-01T12:00:01.500Z';
const shown = formatTime(time);
const format = (line: object) => formatLogLine(JSON.stringify(line), { ownIds: 'dev-', isColoured: false });

test('a request is one line', () => {
  const request = { level: 'info', time, pid: 1, requestId: 'a', method: 'POST', route: '/api/v1/files', status: 201 };
  assert.equal(format({ ...request, ms: 3, msg: 'request' }), `${shown}  POST /api/v1/files  201  3 ms`);
  assert.equal(format({ ...request, ms: 3, msg: 'request', requestId: 'dev-1' }), undefined);
});

test('warnings show their members, and errors their stack', () => {
  const warning = { level: 'warn', time, pid: 1, name: 'QUARRY_PROT', limit: { max: 2 }, msg: 'No such setting' };
  assert.equal(format(warning), `${shown}  warn  No such setting  name=QUARRY_PROT limit={"max":2}`);
  const failure = { level: 'error', time, pid: 1, err: { message: 'gone', stack: 'Error: gone\n    at a.ts:1' } };
  assert.equal(format({ ...failure, msg: 'Failed' }), `${shown}  error  Failed\n    Error: gone\n        at a.ts:1`);
  assert.equal(format({ level: 'info', time, migrations: 1, msg: 'Migrations applied' }), undefined);
});

test('what is not JSON stays, without what moves the cursor', () => {
  const options = { ownIds: 'dev-', isColoured: true };
  assert.equal(formatLogLine('plain \u{1b}]0;title', options), 'plain  ]0;title');
  assert.equal(formatLogLine('null', options), 'null');
  const line = JSON.stringify({ level: 'error', time, msg: 'No \u{1b}[2J' });
  assert.ok(formatLogLine(line, options)?.includes('\u{1b}[31merror'));
  assert.ok(!formatLogLine(line, options)?.includes('\u{1b}[2J'));
});
