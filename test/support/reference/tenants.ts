import { formatId, newUuid, parseId } from '../../../src/lib/ids.ts';
import { AssistantFlow, callback, connectAssistant } from '../assistant.ts';
import type { TestApp } from '../provisioner.ts';
import type { TestServer } from '../server.ts';
import { until } from '../until.ts';
import type { Recorder } from './recorder.ts';

export type Tenants = { user: string; token: string; agent: string; team: string; org: string };
type Pictured = { id: string; logo: { url: string }; profile_picture: { url: string } };
type Tokens = { access_token: string; refresh_token: string; id: string };

/** A picture of one pixel. */
export const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** Records apps, sandboxes, keys, organisations, users, teams, agents, threads and installations. */
export async function recordTenants(recorder: Recorder, app: TestApp): Promise<Tenants> {
  const developer = { token: app.developerToken };
  const made = await recorder.record('createApp', { as: developer, body: { name: 'Harbour' } });
  await recorder.record('listApps', { as: developer });
  await recorder.record('getApp', { path: { app: made.id }, as: developer });
  await recorder.record('createSignInLink', { as: developer });
  const quotas = { file_bytes: 1_073_741_824, documents: 10_000 };
  await recorder.record('updateApp', { path: { app: made.id }, as: developer, body: { name: 'Harbour', quotas } });

  const sandbox = await recorder.record('createSandbox', { body: { name: 'Staging' } });
  const inSandbox = { path: { sandbox: sandbox.id } };
  await recorder.record('listSandboxes');
  await recorder.record('getSandbox', inSandbox);
  await recorder.record('updateSandbox', { ...inSandbox, body: { name: 'Staging 2' } });
  const key = await recorder.record('createKey', {
    body: {
      ...{ type: 'secret', name: 'Backend', sandbox: sandbox.id },
      ...{ expires_in_days: 90, scopes: ['kv', 'files:read'] },
    },
  });
  await recorder.record('listKeys', { query: { page_size: '1' } });
  await recorder.record('getKey', { path: { key: key.id } });
  await recorder.record('deleteKey', { path: { key: key.id } });
  await recorder.record('deleteSandbox', inSandbox);

  const picture = { filename: 'picture.png', mime_type: 'image/png', data: pixel };
  const org = await recorder.record<Pictured>('createOrg', {
    body: { name: 'Example Ltd', slug: 'example', logo: picture },
  });
  const inOrg = { path: { org: org.id } };
  await recorder.record('listOrgs');
  await recorder.record('getOrg', inOrg);
  await recorder.recordUrl('fetchFileOrgLogo', org.logo.url);
  await recorder.record('updateOrg', { ...inOrg, body: { name: 'Example Limited' } });

  const user = await recorder.record('createUser', {
    body: {
      email: 'ada@example.com',
      name: 'Ada',
      password: 'correct horse battery',
      org: org.id,
      org_role: 'admin',
      metadata: { plan: 'pro' },
    },
  });
  const ofUser = { path: { user: user.id } };
  await recorder.record('listUsers');
  await recorder.record('getUser', ofUser);
  await recorder.record('updateUser', { ...ofUser, body: { name: 'Ada L.', metadata: { plan: 'team' } } });
  const { access_token: token } = await recorder.record<Tokens>('createUserToken', {
    ...ofUser,
    body: { type: 'session' },
  });
  await recorder.record('getMe', { as: { token } });

  const agent = await recorder.record<Pictured>('createAgent', {
    body: { name: 'Librarian', lookup_key: 'librarian', user: user.id, profile_picture: picture },
  });
  await recorder.recordUrl('fetchFileAvatar', agent.profile_picture.url);
  const ofAgent = { path: { agent: agent.id } };
  await recorder.record('listAgents');
  await recorder.record('getAgent', ofAgent);
  await recorder.record('updateAgent', { ...ofAgent, body: { description: 'Answers from our documents.' } });

  const team = await recorder.record('createTeam', {
    body: { name: 'Research', description: 'Reads everything.', org: org.id },
  });
  const ofTeam = { path: { team: team.id } };
  await recorder.record('listTeams');
  await recorder.record('getTeam', ofTeam);
  await recorder.record('updateTeam', { ...ofTeam, body: { description: 'Reads and writes.' } });
  const member = await recorder.record('addTeamMember', { ...ofTeam, body: { user: user.id, role: 'admin' } });
  const ofMember = { path: { team: team.id, member: member.id } };
  await recorder.record('listTeamMembers', ofTeam);
  await recorder.record('getTeamMember', ofMember);
  await recorder.record('updateTeamMember', { ...ofMember, body: { role: 'owner' } });
  await recorder.record('removeTeamMember', ofMember);
  await recorder.send('addTeamMember', { ...ofTeam, body: { agent: agent.id } });
  await recorder.record('removeNamedTeamMember', { ...ofTeam, body: { agent: agent.id } });

  await recordGroups(recorder, user.id);
  await recordErasures(recorder);
  await recordConversations(recorder, agent.id);
  return { user: user.id, token, agent: agent.id, team: team.id, org: org.id };
}

async function recordGroups(recorder: Recorder, user: string): Promise<void> {
  const group = await recorder.record('createGroup', {
    body: { namespace: 'https://login.example.com', external_id: 'research', name: 'Research' },
  });
  const ofGroup = { path: { group: group.id } };
  await recorder.record('listGroups', { query: { namespace: 'https://login.example.com', external_id: 'research' } });
  await recorder.record('getGroup', ofGroup);
  await recorder.record('updateGroup', { ...ofGroup, body: { name: 'Research and development' } });
  await recorder.record('addGroupMember', { ...ofGroup, body: { user } });
  await recorder.record('listGroupMembers', ofGroup);
  await recorder.record('removeGroupMember', { path: { group: group.id, user } });
  await recorder.record('setGroupMembers', { ...ofGroup, body: { users: [user] } });
  await recorder.record('deleteGroup', ofGroup);
}

async function recordErasures(recorder: Recorder): Promise<void> {
  const { body: user } = await recorder.send<{ id: string }>('createUser', { body: { email: 'leaving@example.com' } });
  await recorder.record('exportUser', { path: { user: user.id } });
  const erasure = await recorder.record('createErasure', { body: { user: user.id } });
  const ofErasure = { path: { erasure: erasure.id } };
  await until(async () => {
    const { body } = await recorder.send<{ status: string }>('getErasure', ofErasure);
    return body.status === 'done';
  });
  await recorder.record('listErasures');
  await recorder.record('getErasure', ofErasure);
  await recorder.record('getErasureCertificate', ofErasure);
}

async function recordConversations(recorder: Recorder, agent: string): Promise<void> {
  const installation = await recorder.record('createInstallation', { body: { agent, kind: 'thread/messages' } });
  await recorder.record('listInstallations');
  await recorder.record('getInstallation', { path: { installation: installation.id } });
  await recorder.record('updateInstallation', { path: { installation: installation.id }, body: {} });
  const thread = await recorder.record('createThread', { body: { title: 'Opening hours', agent } });
  const ofThread = { path: { thread: thread.id } };
  await recorder.record('listThreads');
  await recorder.record('getThread', ofThread);
  await recorder.record('updateThread', { ...ofThread, body: { title: 'Opening hours in winter' } });
  await recorder.record('createThreadMessage', {
    ...ofThread,
    body: { content: 'We open at nine.', metadata: { channel: 'web' } },
  });
  await recorder.record('deleteThread', ofThread);
  await recorder.record('deleteInstallation', { path: { installation: installation.id } });
}

/** Records sign-in, tokens, the console, and issuers of external identities. */
export async function recordSignIn(recorder: Recorder, server: TestServer, app: TestApp, tenants: Tenants) {
  const { user, token } = tenants;
  const as = { key: app.publishableKey };
  const password = { email: 'ada@example.com', password: 'correct horse battery' };
  const session = await recorder.record<Tokens>('login', { as, body: password });
  const next = await recorder.record<Tokens>('refreshSession', {
    as,
    body: { refresh_token: session.refresh_token },
  });
  await recorder.record('logout', { as, body: { refresh_token: next.refresh_token } });
  const personal = await recorder.send<Tokens>('createUserToken', {
    path: { user },
    as: { token },
    body: { name: 'Laptop', expires_in_days: 30 },
  });
  await recorder.record('listUserTokens', { path: { user } });
  await recorder.record('revokeUserToken', { path: { user, token: personal.body.id } });

  const opened = await server.api<{ csrf_token: string }>('POST', '/console/session', {
    body: { publishable_key: app.publishableKey, ...password },
  });
  const cookie = (opened.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const body = { publishable_key: app.publishableKey, ...password };
  await recorder.record('openConsoleSession', { as: {}, body });
  await recorder.record('getConsoleSession', { as: { headers: { cookie } } });
  await recorder.record('closeConsoleSession', {
    as: { headers: { cookie, 'x-quarry-csrf': opened.body.csrf_token } },
  });

  await recorder.record('revokeUserSessions', { path: { user } });
}

/** Records the trusted issuers of an app, one of them at this address. */
export async function recordIssuers(recorder: Recorder, app: TestApp, tenants: Tenants, issuer: string) {
  const made = await recorder.record('createIdentityIssuer', {
    body: {
      issuer,
      audience: 'https://quarry.example.com',
      create_users: true,
      claims: { org: { claim: 'company', values: { example: tenants.org } } },
      console: { client_id: 'console', client_secret: 'console-secret' },
    },
  });
  const path = { identity_issuer: made.id };
  await recorder.record('listIdentityIssuers');
  await recorder.record('getIdentityIssuer', { path });
  await recorder.record('updateIdentityIssuer', { path, body: { link_by_email: true } });
  const key = app.publishableKey;
  await recorder.record('getMcpResourceMetadata', { path: { key }, as: {} });
  await recorder.record('listSignInIssuers', { as: {}, query: { publishable_key: key } });
  const body = { publishable_key: key, identity_issuer: made.id };
  await recorder.record('startExternalSignIn', { as: {}, body }, ({ url }) => ({ url: String(url).split('?')[0] }));
  await recorder.record('deleteIdentityIssuer', { path });
}

/** Records how an assistant connects, and what the owner of a connection sees. */
export async function recordAssistants(recorder: Recorder, server: TestServer, app: TestApp, { user }: Tenants) {
  const path = { key: app.publishableKey };
  await recorder.record('getAuthorizationServerMetadata', { path, as: {} });
  const metadata = { client_name: 'Helper', redirect_uris: [callback] };
  const registered = await recorder.record<{ client_id: string }>(
    'registerAssistant',
    { path, as: {}, body: metadata },
    (client) => ({ ...client, client_id: 'qmc_EXAMPLE' }),
  );
  const { body: session } = await server.api<Tokens>('POST', `/api/v1/users/${user}/tokens`, {
    ...{ key: app.secretKey, body: { type: 'session' } },
  });
  const flow = new AssistantFlow(server, app.publishableKey, session.access_token);
  const query = flow.parameters(registered.client_id);
  await recorder.record('authorizeAssistant', { path, as: {}, query: Object.fromEntries(query) });
  const as = { token: session.access_token };
  const request = await flow.request(query);
  await recorder.record('getAssistantRequest', { as, query: { request } });
  const decided = await recorder.record<{ redirect_url: string }>(
    'decideAssistantRequest',
    { as, body: { request, decision: 'allow' } },
    () => ({ redirect_url: `${callback}?code=mac_EXAMPLE&iss=${flow.issuer}` }),
  );
  const form = (parameters: Record<string, string>) => ({
    path,
    as: { headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    body: new URLSearchParams({ client_id: registered.client_id, ...parameters }).toString(),
  });
  const grant = {
    grant_type: 'authorization_code',
    code: new URL(decided.redirect_url).searchParams.get('code') ?? '',
    redirect_uri: callback,
    code_verifier: flow.verifier,
  };
  const tokens = await recorder.record<Tokens>('exchangeAssistantToken', form(grant), (shown) => ({
    ...shown,
    access_token: 'mat_EXAMPLE',
    refresh_token: 'mrt_EXAMPLE',
  }));
  const { data } = await recorder.record<{ data: { id: string }[] }>('listConnectedAssistants');
  const assistant = { connected_assistant: data[0]?.id ?? '' };
  await recorder.record('getConnectedAssistant', { path: assistant });
  await recorder.record('revokeAssistantToken', form({ token: tokens.refresh_token }));
  const again = newUuid();
  await connectAssistant(server.db, { app: app.app.uuid, user: parseId('user', user) ?? '', id: again });
  await recorder.record('deleteConnectedAssistant', {
    path: { connected_assistant: formatId('assistant', again) },
  });
}

/** Deletes what the other examples needed. */
export async function recordDeletions(recorder: Recorder, { user, agent, team, org }: Tenants): Promise<void> {
  await recorder.record('deleteAgent', { path: { agent } });
  await recorder.record('deleteTeam', { path: { team } });
  await recorder.record('deleteUser', { path: { user } });
  await recorder.record('deleteOrg', { path: { org } });
}
