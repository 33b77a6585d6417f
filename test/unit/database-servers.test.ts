import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withDatabase } from '../../src/db/address.ts';
import { Servers } from '../../src/db/servers.ts';

test('a URL with several hosts is one URL for each, and leads to the one that accepts writes', () => {
  const servers = new Servers('postgres://me:p%40ss@first,second:5433/app?sslmode=require');
  assert.deepEqual(servers.urls, [
    'postgres://me:p%40ss@first/app?sslmode=require',
    'postgres://me:p%40ss@second:5433/app?sslmode=require',
  ]);
  assert.equal(servers.needsPrimary, true);
});

test('target_session_attrs says whether a server must accept writes, and is not passed to the driver', () => {
  const single = new Servers('postgresql://db.example.com/app');
  assert.deepEqual([single.urls, single.needsPrimary], [['postgresql://db.example.com/app'], false]);
  const cases: [string, string, boolean][] = [
    ['?target_session_attrs=read-write', '', true],
    ['?target_session_attrs=primary&sslmode=require', '?sslmode=require', true],
    ['?a=1&target_session_attrs=any&b=2', '?a=1&b=2', false],
  ];
  for (const [query, rest, needsPrimary] of cases) {
    const servers = new Servers(`postgres://first:5432,[::1]:5433/app${query}`);
    assert.deepEqual(servers.urls, [`postgres://first:5432/app${rest}`, `postgres://[::1]:5433/app${rest}`]);
    assert.equal(servers.needsPrimary, needsPrimary);
  }
});

test('what no server can satisfy is refused before the first connection', () => {
  assert.throws(() => new Servers('postgres://a,b/app?target_session_attrs=standby'), /target_session_attrs/);
  assert.throws(() => new Servers('postgres://a,/app'), /empty host name/);
});

test('after a failure the next connection tries the next server, however many connections failed', () => {
  const servers = new Servers('postgres://a,b,c/app');
  const failed = servers.current;
  servers.leave(failed);
  servers.leave(failed);
  assert.equal(servers.current, 'postgres://b/app');
  servers.leave(servers.current);
  servers.leave(servers.current);
  assert.equal(servers.current, failed);
});

test('another database on the same servers keeps all of them', () => {
  assert.equal(
    withDatabase('postgres://me@a:1,b:2/app?sslmode=require', 'copy'),
    'postgres://me@a:1,b:2/copy?sslmode=require',
  );
  assert.equal(withDatabase('postgres://me@a', 'copy'), 'postgres://me@a/copy');
});
