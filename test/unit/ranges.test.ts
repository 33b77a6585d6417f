import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isNotModified, isRangeCurrent, parseRange } from '../../src/http/body/ranges.ts';

const part = (start: number, end: number) => ({ kind: 'part', start, end });

test('a range is read as RFC 9110 defines it, its end made exclusive and cut to the size', () => {
  for (const [header, expected] of [
    ['bytes=0-0', part(0, 1)],
    ['bytes=2-5', part(2, 6)],
    ['bytes=2-', part(2, 10)],
    ['bytes=2-500', part(2, 10)],
    ['bytes=-3', part(7, 10)],
    ['bytes=-500', part(0, 10)],
    ['Bytes=9-9', part(9, 10)],
  ] as const)
    assert.deepEqual(parseRange(header, 10), expected, header);
});

test('a range outside the body cannot be satisfied', () => {
  for (const header of [
    'bytes=10-',
    'bytes=10-11',
    'bytes=9999999999-',
    'bytes=9223372036854775808-',
    'bytes=99999999999999999999-',
    'bytes=-0',
  ])
    assert.deepEqual(parseRange(header, 10), { kind: 'unsatisfiable' }, header);
  assert.deepEqual(parseRange('bytes=0-', 0), { kind: 'unsatisfiable' });
});

test('anything but a single byte range gets the whole body', () => {
  for (const header of [
    undefined,
    '',
    'bytes=',
    'bytes=9223372036854775808-9223372036854775807',
    'bytes=-',
    'bytes=5-2',
    'bytes=a-b',
    'bytes=0-1,3-4',
    'items=0-1',
    '0-1',
  ])
    assert.deepEqual(parseRange(header, 10), { kind: 'whole' }, header);
});

const validators = { etag: '"abc"', lastModified: new Date('2026-01-02T03:04:05.678Z') };

test('a client that sends its tag learns that nothing changed', () => {
  for (const value of ['"abc"', 'W/"abc"', '"x", "abc"', '*'])
    assert.ok(isNotModified({ 'if-none-match': value }, validators), value);
  for (const value of ['"abd"', 'abc', '']) assert.ok(!isNotModified({ 'if-none-match': value }, validators), value);
  assert.ok(!isNotModified({}, validators));
});

test('the date counts only where no tag was sent', () => {
  const same = 'Fri, 02 Jan 2026 03:04:05 GMT';
  assert.ok(isNotModified({ 'if-modified-since': same }, validators));
  assert.ok(!isNotModified({ 'if-modified-since': 'Fri, 02 Jan 2026 03:04:04 GMT' }, validators));
  assert.ok(!isNotModified({ 'if-modified-since': 'yesterday' }, validators));
  assert.ok(!isNotModified({ 'if-modified-since': same, 'if-none-match': '"other"' }, validators));
});

test('a range is served only while the body matches If-Range', () => {
  assert.ok(isRangeCurrent(undefined, validators));
  assert.ok(isRangeCurrent('"abc"', validators));
  assert.ok(isRangeCurrent('Fri, 02 Jan 2026 03:04:05 GMT', validators));
  for (const value of ['"abd"', 'W/"abc"', 'Fri, 02 Jan 2026 03:04:06 GMT', 'nonsense'])
    assert.ok(!isRangeCurrent(value, validators), value);
});
