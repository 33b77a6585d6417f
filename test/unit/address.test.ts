import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pgConnection, withDatabase } from '../../src/db/address.ts';

const socket = { host: '/run/quarry', port: 5432, database: 'postgres', username: 'quarry' };

test('a socket address names the directory of the socket', () => {
  assert.deepEqual(pgConnection(socket), {
    host: '/run/quarry',
    port: 5432,
    database: 'postgres',
    user: 'quarry',
    ssl: false,
  });
});

test('a connection URL is handed to the driver as it is', () => {
  const url = 'postgres://me:secret@db.example.com:6432/app?sslmode=require';
  assert.deepEqual(pgConnection(url), { connectionString: url });
});

test('another database on the same server keeps everything else', () => {
  assert.deepEqual(withDatabase(socket, 'copy'), { ...socket, database: 'copy' });
  assert.equal(
    withDatabase('postgres://me:secret@db.example.com:6432/app?sslmode=require', 'copy'),
    'postgres://me:secret@db.example.com:6432/copy?sslmode=require',
  );
});
