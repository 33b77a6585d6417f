import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { sendExactPath, startTestServer } from '../../support/server.ts';

/*
 * No name becomes a path of the file system, and no path leads to another owner's entries. Names in backups are in
 * backup.test.ts, names that the command writes in test/cli/actions.test.ts.
 */
const server = await startTestServer();
after(() => server.close());
const { api, provision, baseUrl } = server;
const app = await provision.app();
const [owner, stranger] = [await provision.user(app), await provision.user(app)];

const escapes = [
  ...[
    '../../../../etc/cron.d',
    '/etc/cron.d',
    '..\\..\\windows',
    'a/../../b',
    '....//....//etc',
    'a/%2e%2e/%2e%2e/etc',
  ],
  ...['~/.ssh', 'file:///etc', 'C:\\windows', '\u2024\u2024/\u2024\u2024', 'a/./b', `${'../'.repeat(60)}etc`],
];

/** The files below the data directory, as the blob store names them. */
function storedNames(): string[] {
  return readdirSync(server.dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(server.dataDir.length));
}

async function upload(filename: string) {
  const body = { filename, content_type: 'text/plain', data: Buffer.from('Some text.').toString('base64') };
  return api<{ id: string; filename: string }>('POST', '/api/v1/files', { token: owner.token, body });
}

test('a filename is kept as it is and never becomes a path', async () => {
  for (const filename of escapes) {
    const { status, body } = await upload(filename);
    assert.deepEqual([status, body.filename], [201, filename]);
  }
  for (const name of storedNames())
    assert.match(name, /^\/blobs\/(?:[0-9a-f-]{36}\/\w{2}\/[0-9a-f-]{36}|quarry\/re\/store)$/, name);
  for (const path of ['/etc/cron.d/x.md', join(server.dataDir, '..', 'etc')]) assert.ok(!existsSync(path), path);
});

test('the destination of an extraction stays below its prefix and with its owner', async () => {
  const file = (await upload('report.txt')).body.id;
  for (const destination_path of escapes) {
    const body = { file, destination_kind: 'config', destination_path };
    const { status, text } = await api('POST', '/api/v1/extractions', { token: owner.token, body });
    assert.equal(status, 201, text);
  }
  type Page = { data: { virtual_path: string }[]; total_entries: number };
  const own = await api<Page>('GET', '/api/v1/config?page_size=100', { token: owner.token });
  const paths = own.body.data.map(({ virtual_path: path }) => path);
  assert.ok(paths.length >= escapes.length / 2, `${paths}`);
  for (const path of paths) assert.ok(!path.split('/').some((segment) => ['', '.', '..'].includes(segment)), path);
  for (const destination_path of ['..', '../..', '/', './/..']) {
    const body = { file, destination_kind: 'config', destination_path };
    assert.equal((await api('POST', '/api/v1/extractions', { token: owner.token, body })).status, 422);
  }
  const listed = await api<Page>('GET', '/api/v1/config', { token: stranger.token });
  assert.equal(listed.body.total_entries, 0);
});

test('a config path is compared as text: no spelling of it reaches another owner, a file or another route', async () => {
  const file = (await upload('report.txt')).body.id;
  const body = { file, destination_kind: 'config', destination_path: 'own' };
  assert.equal((await api('POST', '/api/v1/extractions', { token: owner.token, body })).status, 201);
  const get = (path: string, token: string) =>
    sendExactPath<{ virtual_path?: string }>(baseUrl, 'GET', `/api/v1/config/${path}`, { token });
  assert.equal((await get('own/report.md', owner.token)).status, 200);
  assert.equal((await get('own/report.md', stranger.token)).status, 404);
  const spellings = [
    ...['../config/own/report.md', 'x/../own/report.md', './own/report.md', 'own//report.md', 'own/report.md/', '..'],
    ...['own%2freport.md%00', '%2e%2e/own/report.md', '..%2f..%2fetc%2fpasswd', '%2fetc%2fpasswd', '../users/me'],
    `${owner.id}/own/report.md`,
  ];
  for (const path of spellings)
    for (const caller of [owner, stranger]) {
      const { status, body } = await get(path, caller.token);
      // Empty segments and `.` and `..` are dropped, as in a destination.
      if (caller === owner && status === 200) assert.equal(body.virtual_path, 'own/report.md', path);
      else assert.ok([404, 400, 422].includes(status), `${path}: ${status}`);
    }
});
