import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeTransfer, formatBytes, Progress } from '../../src/cli/progress.ts';

test('a progress line replaces itself on a terminal, keeps to its width and is removed at the end', () => {
  let written = '';
  const progress = new Progress({ isTTY: true, columns: 40, write: (text) => (written += text) });
  progress.show('2 of 4 pages', 0.5);
  assert.equal(written, '\r\u{1b}[K[##########----------] 2 of 4 pages');
  written = '';
  progress.show('x'.repeat(100));
  assert.equal(written, `\r\u{1b}[K${'x'.repeat(39)}`);
  written = '';
  progress.clear();
  progress.clear();
  assert.equal(written, '\r\u{1b}[K');
});

test('on anything but a terminal it writes nothing', () => {
  let written = '';
  const progress = new Progress({ write: (text) => (written += text) });
  progress.show('half', 0.5);
  progress.clear();
  assert.equal(written, '');
});

test('bytes are formatted for people', () => {
  assert.deepEqual([0, 1023, 1536, 9 * 1024 * 1024].map(formatBytes), ['0 B', '1023 B', '1.5 KB', '9.0 MB']);
});

test('a transfer shows its rate and the remaining time, once they are meaningful', () => {
  const mib = 1024 * 1024;
  assert.equal(describeTransfer(mib, 10 * mib, 100), '1.0 MB of 10.0 MB');
  assert.equal(describeTransfer(2 * mib, 10 * mib, 1_000), '2.0 MB of 10.0 MB, 2.0 MB/s, 4 s left');
  assert.equal(describeTransfer(mib, 1024 * mib, 1_000), '1.0 MB of 1.0 GB, 1.0 MB/s, 18 min left');
  assert.equal(describeTransfer(mib, 8 * 1024 * mib, 1_000), '1.0 MB of 8.0 GB, 1.0 MB/s, 2 h 17 min left');
  assert.equal(describeTransfer(2 * mib, undefined, 1_000), '2.0 MB, 2.0 MB/s');
});
