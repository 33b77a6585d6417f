import assert from 'node:assert/strict';
import { knowledgeOf } from './knowledge.ts';
import type { TestResource, TestScope, TestUser } from './provisioner.ts';
import type { TestServer } from './server.ts';
import { until } from './until.ts';

/** Production of one app or one of its sandboxes, with everything in it. */
export type Space = {
  scope: TestScope;
  orgs: TestResource[];
  teams: { id: string; members: Map<string, string> }[];
  users: (TestUser & { org: string | undefined; role: string | undefined })[];
  things: Thing[];
  groups: { id: string; members: Set<string> }[];
  /** A key of each user. All users have the same key name. */
  entries: Map<string, string>;
};

type Owner = { user?: string; team?: string; org?: string; agent?: string };
type Grant = { principal_type: string; principal?: string; actions?: string[] };
/** Whom an approval asks; `excluded` is the user who invoked the run and may not answer. */
type Asked = { users: string[]; teams: string[]; roles: string[]; org: string; excluded: string | undefined };
export type Thing = Owner & {
  kind: 'file' | 'source' | 'agent' | 'approval';
  id: string;
  grants: Grant[];
  marker: string;
  /** Of a source: who among its readers sees its document. Undefined: all of them. */
  readers?: Grant[] | undefined;
  asked?: Asked;
};

type Random = () => number;

/** Creates random people, teams, agents, files with grants, sources with one document each, and entries. */
export async function createSpace(server: TestServer, scope: TestScope, random: Random, size: number): Promise<Space> {
  const { api, provision } = server;
  const key = scope.secretKey;
  const below = (count: number) => Math.floor(random() * count);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  const orgs = [await provision.org(scope), await provision.org(scope)];
  const space: Space = { scope, orgs, teams: [], users: [], things: [], groups: [], entries: new Map() };
  for (let number = 0; number < size; number++) {
    const org = below(3) === 0 ? undefined : pick(orgs);
    const role = pick(['admin', 'member', 'viewer'] as const);
    const user = await provision.user(scope, org === undefined ? {} : { org, role });
    space.users.push({ ...user, org: org?.id, role: org === undefined ? undefined : role });
  }
  for (let number = 0; number < 2; number++) {
    const org = below(2) === 0 ? undefined : pick(orgs);
    const members = new Map(space.users.filter(() => below(3) === 0).map((user) => [user.id, user] as const));
    const team = await provision.team(scope, {
      ...(org === undefined ? {} : { org }),
      members: [...members.values()].map((user) => [user, pick(['owner', 'admin', 'member'] as const)]),
    });
    space.teams.push({ id: team.id, members: new Map([...members.keys()].map((id) => [id, id])) });
  }
  const create = async (kind: Thing['kind'], path: string, body: object, marker: string, grants: Grant[] = []) => {
    const made = await api<Owner & { id: string }>('POST', `/api/v1${path}`, { key, body });
    assert.equal(made.status, 201, made.text);
    const { id, user, team, org, agent } = made.body;
    const owner = Object.fromEntries(Object.entries({ user, team, org, agent }).filter(([, value]) => value));
    space.things.push({ kind, id, grants, marker, ...owner });
    return id;
  };
  const owner = (): Owner => {
    const agents = space.things.filter(({ kind }) => kind === 'agent');
    switch (below(agents.length > 0 ? 4 : 3)) {
      case 0:
        return { user: pick(space.users).id };
      case 1:
        return { team: pick(space.teams).id };
      case 2:
        return { org: pick(orgs).id };
      default:
        return { agent: pick(agents).id };
    }
  };
  for (let number = 0; number < 3; number++) {
    const { agent: _none, ...own } = owner();
    await create(
      'agent',
      '/agents',
      { name: `Agent ${number}`, ...(own.user || own.team || own.org ? own : { org: orgs[0]?.id }) },
      '',
    );
  }
  for (let number = 0; number < size * 2; number++) {
    const marker = word(random);
    const grants = Array.from({ length: below(3) }, () => grantOf(space, pick, below)).filter(isFirst);
    const body = {
      ...{ filename: `${marker}.txt`, content_type: 'text/plain', data: Buffer.from(marker).toString('base64') },
      ...owner(),
      ...(grants.length === 0 ? {} : { acl: { grants } }),
    };
    await create('file', '/files', body, marker, grants);
  }
  const knowledge = knowledgeOf(server, { key });
  for (let number = 0; number < 2; number++) {
    const members = space.users.filter(() => below(2) === 0).map(({ id }) => id);
    const made = await api<{ id: string }>('POST', '/api/v1/groups', {
      key,
      body: { namespace: 'walls', external_id: `group ${number}` },
    });
    assert.equal(made.status, 201, made.text);
    const path = `/api/v1/groups/${made.body.id}/members`;
    assert.equal((await api('PUT', path, { key, body: { users: members } })).status, 204);
    space.groups.push({ id: made.body.id, members: new Set(members) });
  }
  for (let number = 0; number < 4; number++) {
    const marker = word(random);
    const source = await create('source', '/knowledge_sources', { type: 'knowledge/documents', ...owner() }, marker);
    const readers =
      below(3) === 0 ? undefined : Array.from({ length: below(3) }, () => readGrantOf(space, pick, below));
    await knowledge.push(
      source,
      `Common words and ${marker}.`,
      readers === undefined ? {} : { acl: { grants: readers } },
    );
    const made = space.things.find(({ id }) => id === source);
    if (made) made.readers = readers;
  }
  for (let number = 0; number < size; number++) await createApproval(server, space, { pick, below, random });
  for (const user of space.users) {
    const value = word(random);
    space.entries.set(user.id, value);
    const put = await api('PUT', '/api/v1/kv/diary', { key, body: { user: user.id, value } });
    assert.equal(put.status, 200, put.text);
  }
  return space;
}

type Chance = { pick: <T>(list: readonly T[]) => T; below: (count: number) => number; random: Random };

/** Starts a run that asks random people. */
async function createApproval({ api }: TestServer, space: Space, { pick, below, random }: Chance): Promise<void> {
  const { scope, orgs, users, teams, things } = space;
  const key = scope.secretKey;
  const some = <T>(list: readonly T[]) => (below(2) === 0 ? [] : [pick(list)]);
  const [invoker] = some(users);
  const org = pick(orgs).id;
  const audience = { users: some(users).map(({ id }) => id), teams: some(teams).map(({ id }) => id), org };
  const roles = some(['admin', 'member', 'viewer']);
  const marker = word(random);
  const ask = { id: 'ask', kind: 'approve', question: marker, ...audience, roles, exclude_invoker: below(2) === 0 };
  const workflow = { kind: 'WorkflowGraph', version: 1, start_node: 'ask', nodes: [ask] };
  const automation = await api<{ id: string }>('POST', '/api/v1/automations', {
    ...{ key, body: { name: marker, type: 'invoked', workflow } },
  });
  await api('POST', `/api/v1/automations/${automation.body.id}/activate`, { key });
  const as = invoker === undefined ? { key } : { token: invoker.token };
  const run = await api<{ id: string }>('POST', `/api/v1/automations/${automation.body.id}/invoke`, as);
  assert.equal(run.status, 200, run.text);
  await until(async () => {
    const { body } = await api<{ data: { id: string }[] }>('GET', `/api/v1/approvals?run=${run.body.id}`, { key });
    const id = body.data[0]?.id;
    if (id === undefined) return false;
    const asked = { ...audience, roles, excluded: ask.exclude_invoker ? invoker?.id : undefined };
    things.push({ kind: 'approval', id, grants: [], marker, asked });
    return true;
  });
}

/** Responses use several prefixes for the same team id. */
function isSame(one: string, other: string | undefined): boolean {
  return one.split('_')[1] === other?.split('_')[1];
}

/** Who sees what according to the documentation: docs/concepts.md, docs/files.md and docs/approvals.md. */
export function sees(space: Space, viewer: Space['users'][number], thing: Thing): boolean {
  const { users, teams, things } = space;
  const user = users.find(({ id }) => id === viewer.id);
  if (user === undefined) return false;
  const isMember = (team: string | undefined) =>
    teams.some(({ id, members }) => isSame(id, team) && members.has(user.id));
  const isOwn = (each: Owner): boolean => {
    if (each.user !== undefined) return each.user === user.id;
    if (each.team !== undefined) return isMember(each.team);
    if (each.agent !== undefined) {
      const agent = things.find(({ kind, id }) => kind === 'agent' && id === each.agent);
      return agent !== undefined && isOwn(agent);
    }
    return each.org !== undefined && each.org === user.org;
  };
  if (thing.asked) {
    const { users: named, teams: theirs, roles, org, excluded } = thing.asked;
    if (user.id === excluded) return false;
    return named.includes(user.id) || theirs.some(isMember) || (user.org === org && roles.includes(user.role ?? ''));
  }
  if (isOwn(thing)) return true;
  if (thing.kind === 'source') return user.role === 'admin' && thing.org !== undefined && thing.org === user.org;
  return isGranted(space, user, thing.org, thing.grants);
}

/** Who reads the document of a source according to docs/permissions.md. */
export function reads(space: Space, viewer: Space['users'][number], source: Thing): boolean {
  if (!sees(space, viewer, source)) return false;
  return source.readers === undefined || isGranted(space, viewer, source.org, source.readers);
}

function isGranted(
  { teams, groups }: Space,
  user: Space['users'][number],
  org: string | undefined,
  grants: readonly Grant[],
): boolean {
  return grants.some(({ principal_type: type, principal }) => {
    if (type === 'everyone') return true;
    if (type === 'user') return principal === user.id;
    if (type === 'team') return teams.some(({ id, members }) => isSame(id, principal) && members.has(user.id));
    if (type === 'group') return groups.some(({ id, members }) => id === principal && members.has(user.id));
    if (type === 'org') return principal === user.org;
    return type === 'org_role' && org === user.org && user.org !== undefined && principal === user.role;
  });
}

function readGrantOf(space: Space, pick: <T>(list: readonly T[]) => T, below: (count: number) => number): Grant {
  if (below(2) === 0) return { principal_type: 'group', principal: pick(space.groups).id };
  const { actions: _actions, ...grant } = grantOf(space, pick, below);
  return grant;
}

function grantOf(space: Space, pick: <T>(list: readonly T[]) => T, below: (count: number) => number): Grant {
  const actions = pick([['read'], ['write'], ['read', 'write']]);
  switch (below(5)) {
    case 0:
      return { principal_type: 'user', principal: pick(space.users).id, actions };
    case 1:
      return { principal_type: 'team', principal: pick(space.teams).id, actions };
    case 2:
      return { principal_type: 'org', principal: pick(space.orgs).id, actions };
    case 3:
      return { principal_type: 'org_role', principal: pick(['admin', 'member', 'viewer']), actions };
    default:
      return below(3) === 0
        ? { principal_type: 'everyone', actions }
        : { principal_type: 'user', principal: pick(space.users).id, actions };
  }
}

function isFirst(grant: Grant, index: number, all: Grant[]): boolean {
  const name = ({ principal_type, principal }: Grant) => `${principal_type}/${principal}`;
  return all.findIndex((other) => name(other) === name(grant)) === index;
}

function word(random: Random): string {
  return `w${Math.floor(random() * 36 ** 8).toString(36)}x`;
}
