import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pgConnection, postgresArguments, withDatabase } from '../../src/db/address.ts';

const socket = { host: '/run/quarry', port: 5432, database: 'postgres', username: 'quarry' };

test('a socket address names the socket file for one driver and its directory for the other', () => {
  const [url, options] = postgresArguments(socket, { max: 3 });
  assert.equal(url, '');
  assert.deepEqual(options, { max: 3, ...socket, ssl: false, path: '/run/quarry/.s.PGSQL.5432' });
  assert.deepEqual(pgConnection(socket), {
    host: '/run/quarry',
    port: 5432,
    database: 'postgres',
    user: 'quarry',
    ssl: false,
  });
});

test('a connection URL is handed to both drivers as it is', () => {
  const url = 'postgres://me:secret@db.example.com:6432/app?sslmode=require';
  assert.deepEqual(postgresArguments(url, { max: 3 }), [url, { max: 3 }]);
  assert.deepEqual(pgConnection(url), { connectionString: url });
});

test('another database on the same server keeps everything else', () => {
  assert.deepEqual(withDatabase(socket, 'copy'), { ...socket, database: 'copy' });
  assert.equal(
    withDatabase('postgres://me:secret@db.example.com:6432/app?sslmode=require', 'copy'),
    'postgres://me:secret@db.example.com:6432/copy?sslmode=require',
  );
});
