import assert from 'node:assert/strict';
import { test } from 'node:test';
import { redact } from '../../src/lib/log.ts';

test('credentials are unreadable wherever they turn up in a line', () => {
  const line = JSON.stringify({
    msg: 'sent sk_abcdefgh12345678 to postgres://me:hunter2@db/app',
    url: '/files/x/share?token=abc123&page=2',
    headers: { authorization: 'Bearer eyJhbGciOi.eyJzdWIiOi.c2lnbmF0dXJl', 'x-api-key': 'anything', accept: '*/*' },
    body: { nested: { password: 'has "quotes" and \\', name: 'Ada' } },
  });
  const shown = JSON.parse(redact(line));
  assert.deepEqual(shown, {
    msg: 'sent [redacted] to postgres://me:[redacted]@db/app',
    url: '/files/x/share?token=[redacted]&page=2',
    headers: { authorization: '[redacted]', 'x-api-key': '[redacted]', accept: '*/*' },
    body: { nested: { password: '[redacted]', name: 'Ada' } },
  });
});
