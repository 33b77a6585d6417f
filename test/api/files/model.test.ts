import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from '../../support/fast-check.ts';
import { type FileBody, pixel } from '../../support/files.ts';
import { modelRuns } from '../../support/rounds.ts';
import { startTestServer } from '../../support/server.ts';

/*
 * Random sequences of file and key-value operations by several callers, each answer compared with what a small model of
 * the rules says. A failure prints the seed and the shortest sequence that was found.
 */

const server = await startTestServer();
after(() => server.close());
const { api, provision } = server;

type Name = 'server' | 'admin' | 'member' | 'viewer' | 'loner' | 'outsider';
const names: Name[] = ['server', 'admin', 'member', 'viewer', 'loner', 'outsider'];
const users = names.slice(1) as Exclude<Name, 'server'>[];
type Grant = { to: 'everyone' | 'viewers' | Exclude<Name, 'server'>; action: 'read' | 'write' };
type ModelFile = {
  id: string;
  owner: 'team' | 'org' | 'app' | Exclude<Name, 'server'>;
  /** Whose organisation the file is of. */
  ofOrg: boolean;
  image: boolean;
  filename: string;
  contents: string;
  shared: boolean;
  url: string;
  shareUrl: string | undefined;
  grants: Grant[];
};

type Operation =
  | { do: 'upload'; by: Name; owner: 'self' | 'team' | 'org'; image: boolean; share: boolean; contents: string }
  | { do: 'rename'; by: Name; file: number; filename: string }
  | { do: 'share'; by: Name; file: number; on: boolean }
  | { do: 'grant'; by: Name; file: number; mode: 'grants' | 'add'; grants: Grant[] }
  | { do: 'revoke'; by: Name; file: number; to: Grant['to'] }
  | { do: 'get' | 'delete'; by: Name; file: number }
  | { do: 'download' | 'fetch-shared'; file: number }
  | { do: 'list'; by: Name }
  | { do: 'put-key'; by: Name; key: string; value: string }
  | { do: 'get-key' | 'delete-key'; by: Name; key: string }
  | { do: 'list-keys'; by: Name };

const by = fc.constantFrom(...names);
const file = fc.nat(9);
const key = fc.constantFrom('a', 'a/b', 'ž', '%');
const to = fc.constantFrom<Grant['to'][]>('everyone', 'viewers', ...users);
const grant: fc.Arbitrary<Grant> = fc.record({ to, action: fc.constantFrom('read', 'write') });
const word = fc.constantFrom('x', 'Y.txt', '../z', 'ž');
const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({
    do: fc.constant('upload' as const),
    by,
    owner: fc.constantFrom('self', 'team', 'org'),
    image: fc.boolean(),
    share: fc.boolean(),
    contents: fc.string({ maxLength: 5 }),
  }),
  fc.record({ do: fc.constant('rename' as const), by, file, filename: word }),
  fc.record({ do: fc.constant('share' as const), by, file, on: fc.boolean() }),
  fc.record({
    do: fc.constant('grant' as const),
    by,
    file,
    mode: fc.constantFrom('grants', 'add'),
    grants: fc.array(grant, { maxLength: 3 }),
  }),
  fc.record({ do: fc.constant('revoke' as const), by, file, to }),
  fc.record({ do: fc.constantFrom('get' as const, 'delete' as const), by, file }),
  fc.record({ do: fc.constantFrom('download' as const, 'fetch-shared' as const), file }),
  fc.record({ do: fc.constant('list' as const), by }),
  fc.record({ do: fc.constant('put-key' as const), by, key, value: word }),
  fc.record({ do: fc.constantFrom('get-key' as const, 'delete-key' as const), by, key }),
  fc.record({ do: fc.constant('list-keys' as const), by }),
);

const inOrg = (name: Name) => name === 'admin' || name === 'member' || name === 'viewer';
const inTeam = (name: Name) => name === 'member' || name === 'loner';
/** Themselves, people of their org, people of their teams. */
const seesUser = (name: Name, other: Name) =>
  name === 'server' || name === other || (inOrg(name) && inOrg(other)) || (inTeam(name) && inTeam(other));

function granted(name: Name, f: ModelFile, action: Grant['action']): boolean {
  return f.grants.some(
    (g) =>
      (g.action === 'write' || action === 'read') &&
      (g.to === 'everyone' || g.to === name || (g.to === 'viewers' && name === 'viewer' && f.ofOrg)),
  );
}

function owns(name: Name, f: ModelFile, change: 'see' | 'update' | 'delete'): boolean {
  if (name === 'server' || f.owner === name) return true;
  // `member` owns the team, `loner` is a plain member of it.
  if (f.owner === 'team') return inTeam(name) && (change !== 'delete' || name === 'member');
  if (f.owner !== 'org' || !inOrg(name)) return false;
  return change === 'see' || name === 'admin' || (name === 'member' && change === 'update');
}

const sees = (name: Name, f: ModelFile) => owns(name, f, 'see') || granted(name, f, 'read');

async function runOperations(operations: Operation[]): Promise<void> {
  const world = await provision.world();
  const { app } = world;
  const people = {
    admin: world.admin,
    member: world.member,
    viewer: world.viewer,
    loner: world.loner,
    outsider: world.otherUser,
  };
  const team = await provision.team(app, {
    members: [
      [people.member, 'owner'],
      [people.loner, 'member'],
    ],
  });
  const files: ModelFile[] = [];
  const keys = new Map<string, string>();
  const as = (name: Name) => (name === 'server' ? { key: app.secretKey } : { token: people[name].token });
  const principal = (to: Grant['to']) =>
    to === 'everyone'
      ? { principal_type: 'everyone' }
      : to === 'viewers'
        ? { principal_type: 'org_role', principal: 'viewer' }
        : { principal_type: 'user', principal: people[to].id };
  const wire = (grants: Grant[]) => grants.map(({ to, action }) => ({ ...principal(to), actions: [action] }));
  const unknown = (name: Name, f: ModelFile | undefined, to: Grant['to']) =>
    to !== 'everyone' && to !== 'viewers' && !seesUser(name, to) && !f?.grants.some((g) => g.to === to);

  const step: { [K in Operation['do']]: (op: Extract<Operation, { do: K }>) => Promise<void> } = {
    async upload({ by: name, owner, image, share, contents }) {
      const named = owner === 'team' ? { team: team.id } : owner === 'org' ? { org: world.org.id } : {};
      const answer = await api<FileBody>('POST', '/api/v1/files', {
        ...as(name),
        body: {
          filename: 'new',
          content_type: image ? 'image/png' : 'text/plain',
          data: (image ? pixel : Buffer.from(contents)).toString('base64'),
          share,
          ...named,
        },
      });
      const invisible =
        (owner === 'team' && name !== 'server' && !inTeam(name)) ||
        (owner === 'org' && name !== 'server' && !inOrg(name));
      const expected = (share && !image) || invisible ? 422 : 201;
      assert.equal(answer.status, expected);
      if (expected !== 201) return;
      const owned = owner === 'team' ? 'team' : name !== 'server' ? name : owner === 'org' ? 'org' : 'app';
      files.push({
        id: answer.body.id,
        owner: owned,
        ofOrg: owner === 'org' || inOrg(name),
        image,
        filename: 'new',
        contents: image ? pixel.toString('latin1') : Buffer.from(contents).toString('latin1'),
        shared: share,
        url: answer.body.url,
        shareUrl: answer.body.share_url,
        grants: [],
      });
    },
    rename: (op) =>
      change(op, { filename: op.filename }, false, (f) => {
        f.filename = op.filename;
      }),
    share: (op) =>
      change(
        op,
        { share: op.on },
        true,
        (f, answer) => {
          f.shared = op.on;
          if (op.on) {
            f.shareUrl ??= answer.share_url;
            assert.equal(answer.share_url, f.shareUrl);
          } else assert.equal(answer.share_url, undefined);
        },
        (f) => op.on && !f.image,
      ),
    grant: (op) =>
      change(
        op,
        { acl: { [op.mode]: wire(op.grants) } },
        true,
        (f) => {
          f.grants = op.mode === 'grants' ? op.grants : [...f.grants, ...op.grants];
        },
        (f) => op.grants.some((g) => unknown(op.by, f, g.to)),
      ),
    revoke: (op) =>
      change(
        op,
        { acl: { remove: [principal(op.to)] } },
        true,
        (f) => {
          f.grants = f.grants.filter((g) => g.to !== op.to);
        },
        (f) => unknown(op.by, f, op.to),
      ),
    async get({ by: name, file: at }) {
      const f = files[at % files.length];
      if (!f) return;
      const answer = await api<FileBody>('GET', `/api/v1/files/${f.id}`, as(name));
      assert.equal(answer.status, sees(name, f) ? 200 : 404);
      if (answer.status !== 200) return;
      assert.deepEqual([answer.body.filename, answer.body.shared], [f.filename, f.shared]);
      assert.equal(answer.body.acl !== undefined, owns(name, f, 'update'));
    },
    async delete({ by: name, file: at }) {
      const f = files[at % files.length];
      if (!f) return;
      const answer = await api('DELETE', `/api/v1/files/${f.id}`, as(name));
      assert.equal(answer.status, !sees(name, f) ? 404 : owns(name, f, 'delete') ? 204 : 403);
      if (answer.status !== 204) return;
      files.splice(files.indexOf(f), 1);
      for (const url of [f.url, f.shareUrl]) if (url) assert.equal((await fetch(url)).status, 404);
    },
    async download({ file: at }) {
      const f = files[at % files.length];
      if (!f) return;
      const answer = await fetch(f.url);
      assert.equal(Buffer.from(await answer.arrayBuffer()).toString('latin1'), f.contents);
    },
    async 'fetch-shared'({ file: at }) {
      const f = files[at % files.length];
      if (f?.shareUrl === undefined) return;
      const answer = await fetch(f.shareUrl);
      assert.equal(answer.status, f.shared ? 200 : 404);
      await answer.arrayBuffer();
    },
    async list({ by: name }) {
      const answer = await api<{ data: FileBody[]; total_entries: number }>(
        'GET',
        '/api/v1/files?page_size=100',
        as(name),
      );
      const expected = files.filter((f) => sees(name, f)).map(({ id }) => id);
      assert.deepEqual(answer.body.data.map(({ id }) => id).toSorted(), expected.toSorted());
      assert.equal(answer.body.total_entries, expected.length);
    },
    async 'put-key'({ by: name, key: entry, value }) {
      const whose = name === 'server' ? 'loner' : name;
      const answer = await api('PUT', `/api/v1/kv/${encodeURIComponent(entry)}`, {
        ...as(name),
        body: { value, ...(name === 'server' ? { user: people.loner.id } : {}) },
      });
      assert.equal(answer.status, 200);
      keys.set(`${whose} ${entry}`, value);
    },
    async 'get-key'({ by: name, key: entry }) {
      const answer = await api<{ value: string }>('GET', keyPath(name, entry), as(name));
      const expected = keys.get(`${name === 'server' ? 'loner' : name} ${entry}`);
      assert.equal(answer.status, expected === undefined ? 404 : 200);
      if (expected !== undefined) assert.equal(answer.body.value, expected);
    },
    async 'delete-key'({ by: name, key: entry }) {
      const answer = await api('DELETE', keyPath(name, entry), as(name));
      assert.equal(answer.status, keys.delete(`${name === 'server' ? 'loner' : name} ${entry}`) ? 204 : 404);
    },
    async 'list-keys'({ by: name }) {
      const answer = await api<{ data: { user: string; key: string; value: string }[] }>('GET', '/api/v1/kv', as(name));
      const nameOf = new Map(users.map((user) => [people[user].id, user]));
      const listed = answer.body.data.map((entry) => `${nameOf.get(entry.user)} ${entry.key} ${entry.value}`);
      const expected = [...keys].filter(([at]) => name === 'server' || at.startsWith(`${name} `));
      assert.deepEqual(listed.toSorted(), expected.map(([at, value]) => `${at} ${value}`).toSorted());
    },
  };

  function keyPath(name: Name, entry: string): string {
    return `/api/v1/kv/${encodeURIComponent(entry)}${name === 'server' ? `?user=${people.loner.id}` : ''}`;
  }

  /** One PATCH: 404 unseen, 403 without the right, 422 for what the rules refuse, else done. */
  async function change(
    op: { by: Name; file: number },
    body: object,
    needsOwner: boolean,
    done: (f: ModelFile, answer: FileBody) => void,
    refused: (f: ModelFile) => boolean = () => false,
  ): Promise<void> {
    const f = files[op.file % files.length];
    if (!f) return;
    const answer = await api<FileBody>('PATCH', `/api/v1/files/${f.id}`, { ...as(op.by), body });
    const allowed = owns(op.by, f, 'update') || (!needsOwner && granted(op.by, f, 'write'));
    const expected = !sees(op.by, f) ? 404 : !allowed ? 403 : refused(f) ? 422 : 200;
    assert.equal(answer.status, expected, answer.text);
    if (expected === 200) done(f, answer.body);
  }

  const first = { do: 'upload', image: true, share: false, contents: '' } as const;
  const uploads: Operation[] = [
    { ...first, by: 'server', owner: 'org' },
    { ...first, by: 'server', owner: 'team', image: false },
    { ...first, by: 'server', owner: 'self' },
    { ...first, by: 'member', owner: 'self' },
    { ...first, by: 'outsider', owner: 'self' },
  ];
  for (const op of [...uploads, ...operations]) await (step[op.do] as (op: Operation) => Promise<void>)(op);
}

test('files and key-value entries follow the model of the rules, for any caller and any order of operations', async () => {
  await fc.assert(fc.asyncProperty(fc.array(operation, { minLength: 40, maxLength: 100 }), runOperations), {
    ...modelRuns(15),
    interruptAfterTimeLimit: 90_000,
  });
});
