import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { TObject } from 'typebox';
import { nodeKinds } from '../../../src/automations/nodes/index.ts';
import { formatId, newUuid } from '../../../src/lib/ids.ts';
import { createFixtures, type Target } from '../../support/authorization/fixtures.ts';
import { type Reference, withReference } from '../../support/authorization/references.ts';
import { createTenants, type Ownership, ownerships } from '../../support/authorization/tenants.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { startTestServer } from '../../support/server.ts';

/*
 * What nodes of workflows name: each member of each kind of node that holds an id × every identity that a run acts as
 * × whose the thing is. The law is that of test/api/tenancy/authorization-references.test.ts: what the identity does not see
 * fails the node just as what nobody has, and what it sees does not. A kind of node without its place below fails the
 * first test.
 */

const server = await startTestServer({ env: { QUARRY_DB_POOL: '10' } });
after(() => server.close());
const { provision } = server;
const town = await createTenants(server);
const { make, post } = createFixtures(server, town);
const { app, org, otherOrg, team, people } = town;
const client = new AutomationsClient(server, app);
const agents = {
  org: await provision.agent(app, { org }),
  team: await provision.agent(app, { team }),
  otherOrg: await provision.agent(app, { org: otherOrg }),
};

type Named = Reference | 'automation';

/** Members that name a thing. */
const references: Record<string, Record<string, Named | readonly Named[]>> = {
  extract: { file: 'file', agent: 'agent', org: 'org' },
  file_write: { agent: 'agent', org: 'org', team: 'team', user: 'user', acl: ['user', 'team', 'org', 'agent'] },
  ingest: { source: 'source', file: 'file' },
  kv_delete: { user: 'user' },
  kv_get: { user: 'user' },
  kv_set: { user: 'user' },
  run_automation: { automation: 'automation' },
  search: { source: 'source' },
};
/** Members that name nothing, or other nodes. */
const plain: Record<string, string> = {
  // It names who may answer, among all people of its app; naming them shows nothing of them.
  approve: 'question form users teams roles org exclude_invoker on_timeout',
  complete: 'result',
  conditional: 'when on_true on_false',
  emit_event: 'name payload',
  extract: 'destination_kind destination_path url mode max_pages schema instructions model',
  fail: 'message code',
  file_write: 'filename content_type data share',
  for_each: 'items node concurrency',
  // The operations and automations of `tools` are checked as the nodes that call them.
  generate: 'messages schema temperature tokens model tools max_turns',
  http_request: 'method url headers query body expect_status',
  ingest: 'content pull title metadata dedupe on_active',
  kv_delete: 'key',
  kv_get: 'key',
  kv_set: 'key value',
  parallel: 'nodes',
  run_automation: 'payload',
  search: 'query mode max_results filter explain rewrite rerank',
  transform: 'value',
  trigger: '',
  wait: 'seconds until',
  wait_for_signal: 'name on_timeout',
};

test('every member of every kind of node is classified by what it names', () => {
  const unknown = [...nodeKinds].flatMap(([kind, { members }]) => {
    const known = new Set([...Object.keys(references[kind] ?? {}), ...(plain[kind] ?? '').split(' ')]);
    const missing = Object.keys((members as TObject).properties).filter((member) => !known.has(member));
    return kind in plain ? missing.map((member) => `${kind}.${member}`) : [kind];
  });
  assert.deepEqual(unknown, [], 'Add these above, with what they name.');
  const gone = [...Object.keys(references), ...Object.keys(plain)].filter((kind) => !nodeKinds.has(kind));
  assert.deepEqual(gone, [], 'There are no such nodes any more.');
});

type Identity = { name: string; runAs: Record<string, string>; sees: Record<Named, readonly Ownership[]> };

const here: readonly Ownership[] = ['mine', 'org', 'team', 'agent', 'other-org'];
const all = (whose: readonly Ownership[]): Identity['sees'] => ({
  ...{ agent: whose, file: whose, source: whose, automation: whose, installation: [], thread: whose, sandbox: [] },
  ...{ org: whose, team: whose, user: whose },
});
/** What an identity sees of things with owners, and of the people and places themselves. */
const identities: Identity[] = [
  { name: 'the app', runAs: {}, sees: all(here) },
  ...Object.entries({
    owner: { owned: ['mine', 'org', 'team', 'agent'], org: ['org'], team: ['team'], user: ['mine'] },
    admin: { owned: ['org'], source: ['mine', 'org', 'team', 'agent'], org: ['org'], team: ['team'], user: ['mine'] },
    viewer: { owned: ['org'], org: ['org'], team: [], user: ['mine'] },
    teammate: { owned: ['team'], org: [], team: ['team'], user: ['mine'] },
    outsider: { owned: ['other-org'], org: ['other-org'], team: ['other-org'], user: ['other-org'] },
  } as Record<
    string,
    { owned: Ownership[]; source?: Ownership[]; org: Ownership[]; team: Ownership[]; user: Ownership[] }
  >).map(
    ([name, { owned, ...sees }]): Identity => ({
      name,
      runAs: { run_as_user: people[name as 'owner'].id },
      sees: { ...all(owned), ...sees },
    }),
  ),
  agentIdentity("the owner's agent", town.agent.id, ['org', 'agent'], { org: ['org'], user: ['mine'] }),
  agentIdentity('an agent of the org', agents.org.id, ['org'], {
    org: ['org'],
    user: ['mine'],
  }),
  // The row is another team of the same people, which the agent is not of.
  agentIdentity('an agent of the team', agents.team.id, ['team'], { user: ['mine'] }),
  agentIdentity('an agent of the other org', agents.otherOrg.id, ['other-org'], {
    org: ['other-org'],
    user: ['other-org'],
  }),
];

function agentIdentity(
  name: string,
  id: string,
  owned: readonly Ownership[],
  sees: Partial<Identity['sees']>,
): Identity {
  return { name, runAs: { run_as_agent: id }, sees: { ...all(owned), org: [], team: [], user: [], ...sees } };
}

const things: Record<string, (whose: Ownership) => Promise<Target>> = {
  ...make,
  team: async (whose) => ({ id: (await make.team(whose)).parent ?? '', whose }),
  async automation(whose) {
    const owner = Object.entries(town.owners[whose]).filter(
      ([member]) => member !== 'org' || whose === 'org' || whose === 'other-org',
    );
    const made = await post(whose, '/automations', {
      name: 'Child',
      type: 'invoked',
      workflow: graphOf({ id: 't', kind: 'trigger' }),
      ...Object.fromEntries(owner.map(([member, { id }]) => [member, id])),
    });
    const active = await server.api('POST', `/api/v1/automations/${made.id}/activate`, {
      key: town.scopes[whose].secretKey,
    });
    assert.equal(active.status, 200, active.text);
    return made;
  },
};
const whoseOf: Partial<Record<Named, readonly Ownership[]>> = {
  // Automations belong to people, teams and orgs; a team's row has one of its own; people are rows themselves.
  automation: ['mine', 'org', 'team', 'other-org', 'other-app', 'sandbox'],
  team: ['team', 'other-org', 'other-app', 'sandbox'],
  org: ['org', 'other-org', 'other-app', 'sandbox'],
  user: ['mine', 'other-org', 'other-app', 'sandbox'],
  agent: ['mine', 'org', 'team', 'other-org', 'other-app', 'sandbox'],
};

const text = { filename: 'a.txt', content_type: 'text/plain', data: 'VGV4dC4=' };
const bases: Record<string, (identity: Identity, member: string) => Promise<object> | object> = {
  extract: async (identity, member) => ({
    destination_kind: 'storage',
    ...(member === 'file' ? {} : { file: await ownFile(identity) }),
  }),
  file_write: () => text,
  ingest: async (identity, member) =>
    member === 'file' ? { source: await ownSource(identity) } : { content: { data: 'Text.' } },
  kv_delete: () => ({ key: 'k' }),
  kv_get: () => ({ key: 'k' }),
  kv_set: () => ({ key: 'k', value: 'v' }),
  run_automation: () => ({ payload: {} }),
  search: () => ({ query: 'text' }),
};

/** A file and a source that belong to the identity itself, or to the app. */
function ownerOf({ runAs: { run_as_user: user, run_as_agent: agent } }: Identity): Record<string, string> {
  if (user !== undefined) return { user };
  return agent === undefined ? {} : { agent };
}
const ownFile = async (identity: Identity) => (await post('mine', '/files', { ...text, ...ownerOf(identity) })).id;
const ownSource = async (identity: Identity) => {
  const owner = ownerOf(identity);
  const own = Object.keys(owner).length > 0 ? owner : { org: org.id };
  return (await post('mine', '/knowledge_sources', { type: 'knowledge/documents', ...own })).id;
};

type Step = { id: string; kind: string; member: string; named: Named; whose: Ownership | 'nobody'; node: object };

async function stepsFor(identity: Identity, targets: Map<string, string>): Promise<Step[]> {
  const steps: Step[] = [];
  for (const [kind, members] of Object.entries(references))
    for (const [member, named] of Object.entries(members))
      for (const each of [named].flat() as Named[]) {
        const base = await bases[kind]?.(identity, member);
        const kinds = whoseOf[each] ?? ownerships;
        for (const whose of [...kinds, 'nobody'] as const) {
          const id = whose === 'nobody' ? formatId(each, newUuid()) : (targets.get(`${each}/${whose}`) ?? '');
          const acl =
            member === 'acl' ? withReference({}, 'body.acl.add', each as Reference, id).body : { [member]: id };
          steps.push({ id: `n${steps.length}`, kind, member, named: each, whose, node: { ...base, ...acl } });
        }
      }
  return steps;
}

for (const identity of identities)
  test(`a run that acts as ${identity.name} names what it sees, and everything else is like a missing resource`, async () => {
    const targets = new Map<string, string>();
    for (const named of new Set(
      Object.values(references).flatMap((members) => Object.values(members).flat() as Named[]),
    ))
      for (const whose of whoseOf[named] ?? ownerships)
        targets.set(`${named}/${whose}`, (await things[named]?.(whose))?.id ?? '');
    const steps = await stepsFor(identity, targets);
    const nodes = steps.map(({ id, kind, node }, index) => {
      const next = steps[index + 1]?.id ?? 'end';
      return { id, kind, ...node, on_success: next, on_error: next };
    });
    const { id } = await client.createAutomation({
      ...identity.runAs,
      workflow: graphOf(...nodes, { id: 'end', kind: 'complete', result: {} }),
    });
    const run = await client.waitForEnd((await client.invoke(id)).id);
    assert.equal(run.status, 'completed', JSON.stringify(run.error));
    const outcomes = new Map<string, string>();
    for (const entry of await client.journal(run.id)) {
      if (entry.node_id === undefined) continue;
      if (entry.type === 'node_completed') outcomes.set(entry.node_id, 'completed');
      if (entry.type === 'node_failed') {
        const { code, message } = entry.record.payload as { code: string; message: string };
        outcomes.set(entry.node_id, `${code}: ${message}`);
      }
    }
    const problems: string[] = [];
    const isAgent = 'run_as_agent' in identity.runAs;
    const isUser = 'run_as_user' in identity.runAs;
    for (const step of steps) {
      const { kind, member, named, whose } = step;
      const told = outcomes.get(step.id);
      const missing = outcomes.get(
        steps.find(
          (each) => each.kind === kind && each.member === member && each.named === named && each.whose === 'nobody',
        )?.id ?? '',
      );
      const name = `${kind}.${member} (${named}) ${whose}: ${told}`;
      if (kind.startsWith('kv_')) {
        // A user always gets their own entries, an agent none.
        const expected = isAgent ? /^not_found/ : isUser || kind !== 'kv_set' ? /^completed/ : undefined;
        if (expected && !expected.test(told ?? '')) problems.push(name);
        if (isAgent || isUser || kind !== 'kv_set') continue;
      }
      if (whose === 'nobody') {
        if (told === 'completed') problems.push(`${name}, although nobody has it`);
      } else if (identity.sees[named].includes(whose)) {
        if (told === missing) problems.push(`${name}, although it is seen`);
      } else if (told !== missing) problems.push(`${name}, not ${missing}`);
    }
    assert.deepEqual(problems, []);
    assert.ok(steps.length > 80, `${steps.length}`);
  });
