import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeTransfer, formatBytes, PageCount, Progress } from '../../src/cli/client/progress.ts';

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
  assert.deepEqual([0, 1023, 1536, 9 * 1024 * 1024].map(formatBytes), ['0 B', '1023 B', '1.5 KiB', '9.0 MiB']);
});

test('a transfer shows its rate and the remaining time, once they are meaningful', () => {
  const mib = 1024 * 1024;
  assert.equal(describeTransfer(mib, 10 * mib, 100), '1.0 MiB of 10.0 MiB');
  assert.equal(describeTransfer(2 * mib, 10 * mib, 1_000), '2.0 MiB of 10.0 MiB, 2.0 MiB/s, 4 s left');
  assert.equal(describeTransfer(mib, 1024 * mib, 1_000), '1.0 MiB of 1.0 GiB, 1.0 MiB/s, 18 min left');
  assert.equal(describeTransfer(mib, 8 * 1024 * mib, 1_000), '1.0 MiB of 8.0 GiB, 1.0 MiB/s, 2 h 17 min left');
  assert.equal(describeTransfer(2 * mib, undefined, 1_000), '2.0 MiB, 2.0 MiB/s');
});

test('a job shows how fast its pages are read and the remaining time, from when it was first looked at', () => {
  let ms = 60_000;
  const pages = new PageCount(() => ms);
  assert.equal(pages.describe(10, 50), '10 of 50 pages');
  ms += 400;
  assert.equal(pages.describe(12, 50), '12 of 50 pages');
  ms += 9_600;
  assert.equal(pages.describe(20, 50), '20 of 50 pages, 1.0 pages/s, 30 s left');
  assert.equal(pages.describe(15, 100), '15 of 100 pages, 30.0 pages/min, 3 min left');
  assert.equal(pages.describe(50, 50), '50 of 50 pages, 4.0 pages/s');
  assert.equal(pages.describe(110, undefined), '110 pages, 10.0 pages/s');
  assert.equal(new PageCount().describe(1, undefined), '1 page');
});
