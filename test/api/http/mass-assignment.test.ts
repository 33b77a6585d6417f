import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { actionOf } from '../../../src/audit/log.ts';
import { type ApiDocument, type ApiOperation, type JsonSchema, sample } from '../../fuzz/api-document.ts';
import { createResources } from '../../fuzz/api-resources.ts';
import { startSite } from '../../support/fixture-site.ts';
import { startProvider } from '../../support/oidc-provider.ts';
import { type ErrorBody, startTestServer } from '../../support/server.ts';

/*
 * Mass assignment: a body sets only what its schema names. Members of rows and of responses that give rights, identity or
 * history are refused by every operation that takes JSON.
 */
const rights = [
  ...['id', 'app', 'app_id', 'appId', 'sandbox', 'sandbox_id', 'developer', 'developer_id', 'created_at', 'updated_at'],
  ...['role', 'org_role', 'is_admin', 'permissions', 'epoch', 'password_hash', 'digest', 'capability_key'],
  ...['user_id', 'org_id', 'team_id', 'agent_id', 'owner', 'owner_id', 'created_by', 'size', 'checksum', 'blob_key'],
  ...['__proto__', 'constructor'],
];

const server = await startTestServer({
  logLevel: 'silent',
  env: { QUARRY_FETCH_ALLOW: '127.0.0.0/8', QUARRY_MCP_OAUTH: 'true' },
});
const site = await startSite({ '/hook': 'ok' });
const provider = await startProvider({ redirectUris: [`${server.baseUrl}/console/oidc/callback`] });
after(async () => {
  await server.close();
  await site.close();
  await provider.close();
});
const document = (await server.api<ApiDocument>('GET', '/openapi.json')).body;
const resources = await createResources(server, { origin: site.origin, provider });

type Target = { operation: ApiOperation; method: string; template: string; schema: JsonSchema };

const targets: Target[] = Object.entries(document.paths)
  // RFC 7591 has a server ignore members that it does not know; a registered client has no row.
  .filter(([template]) => template !== '/mcp' && !/^\/(?:mcp|oauth)\//.test(template))
  .flatMap(([template, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const schema = operation.requestBody?.content['application/json']?.schema;
      return schema === undefined ? [] : [{ operation, method: method.toUpperCase(), template, schema }];
    }),
  );

test('no operation takes a member that gives rights, identity or history, except where it is its purpose', async () => {
  const taken: string[] = [];
  let sent = 0;
  for (const target of targets) {
    const { operationId } = target.operation;
    const named = new Set(memberNames(target.schema));
    for (const member of rights) {
      if (named.has(member)) {
        taken.push(`${operationId} ${member}`);
        continue;
      }
      const { status, body, text } = await send(target, member);
      sent += 1;
      assert.ok(status === 422 || status === 400, `${operationId} with ${member}: ${status} ${text.slice(0, 200)}`);
      // A body of alternatives names the alternative that fits least badly.
      const { param, fields = [] } = body.error as { param?: string | null; fields?: unknown[] };
      assert.ok(
        typeof param === 'string' || fields.length > 0 || body.error.code === 'invalid_json',
        `${operationId} ${member}: ${text}`,
      );
    }
  }
  assert.ok(sent > 1_000, `${sent} requests`);
  assert.deepEqual(taken.sort(), allowed.toSorted());
});

async function send({ operation, method, template, schema }: Target, member: string) {
  const { known, others, headersFor, bodies } = resources;
  const { operationId } = operation;
  const action = actionOf(operationId);
  const things = { ...known, ...others[action], ...others[operationId] };
  const plain = { ...(sample(document, schema, things) as object), ...bodies[action], ...bodies[operationId] };
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(things[name] ?? 'nothing')),
  );
  const [headers = {}] = headersFor(operationId, template, operation['x-callers']);
  const text = JSON.stringify(plain).replace(
    /}$/,
    `${plain === undefined || Object.keys(plain).length === 0 ? '' : ','}"${member}":"x"}`,
  );
  return server.api<ErrorBody>(method, path, {
    headers: { 'content-type': 'application/json', ...headers },
    body: text,
  });
}

function memberNames(given: JsonSchema): string[] {
  const name = given.$ref?.replace('#/components/schemas/', '');
  const schema = (name === undefined ? undefined : document.components.schemas[name]) ?? given;
  return [...Object.keys(schema.properties ?? {}), ...(schema.anyOf ?? []).flatMap(memberNames)];
}

/** What each operation is for. A new line here is a new way to rights: say in its route who may use it. */
const allowed = [
  // Of a caller who manages the org, the team or the app: authorization-matrix.test.ts.
  ...['createUser', 'updateUser', 'developerCreateUser', 'developerUpdateUser'].map((name) => `${name} org_role`),
  ...['addTeamMember', 'updateTeamMember', 'developerAddTeamMember', 'developerUpdateTeamMember'].map(
    (name) => `${name} role`,
  ),
  ...['createKey sandbox', 'developerCreateKey sandbox'],
  // What an upload by this URL must have.
  ...['createFileUploadUrl checksum', 'createFileUploadUrl size'],
];
