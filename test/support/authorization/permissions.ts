import { newUuid } from '../../../src/lib/ids.ts';
import type { Fixtures } from './fixtures.ts';
import { type Expectation, type Row, readMatrix } from './matrix.ts';
import { everybody, keysOnly, sources, users } from './tables.ts';

/** The body names a user of the app, who does not exist for other keys. */
const eraseUser = readMatrix(`
              users key  sandboxKey otherKey
  mine        403   ok   422        422
`);

/** Groups, the issuers that supply some, and the readers of documents. `ofApp` is the table of what only the whole app sees. */
export function permissionExpectations(make: Fixtures['make'], ofApp: Row[]): Record<string, Expectation> {
  return {
    'GET /api/v1/groups': { table: keysOnly },
    'POST /api/v1/groups': {
      table: keysOnly,
      send: () => ({ body: { namespace: 'test', external_id: newUuid() } }),
    },
    'GET /api/v1/groups/:group': { table: ofApp, make: make.group },
    'PATCH /api/v1/groups/:group': { table: ofApp, make: make.group },
    'DELETE /api/v1/groups/:group': { table: ofApp, make: make.group, consumes: true },
    'GET /api/v1/groups/:group/members': { table: ofApp, make: make.group },
    'POST /api/v1/groups/:group/members': {
      table: ofApp,
      make: make.group,
      consumes: true,
      send: async ({ whose }) => ({ body: { user: (await make.spareUser(whose)).id } }),
    },
    'PUT /api/v1/groups/:group/members': {
      table: ofApp,
      make: make.group,
      send: () => ({ body: { users: [] } }),
    },
    'DELETE /api/v1/groups/:group/members/:user': { table: ofApp, make: make.groupMember, consumes: true },
    'GET /api/v1/erasures': { table: keysOnly },
    'POST /api/v1/erasures': {
      table: eraseUser,
      make: make.spareUser,
      consumes: true,
      send: ({ id }) => ({ body: { user: id } }),
    },
    'GET /api/v1/erasures/:erasure': { table: ofApp, make: make.erasure },
    'GET /api/v1/erasures/:erasure/certificate': { table: ofApp, make: make.erasure },
    'GET /api/v1/users/:user/export': { table: ofApp, make: make.spareUser },
    'GET /api/v1/identity_issuers': { table: keysOnly },
    'POST /api/v1/identity_issuers': {
      table: keysOnly,
      send: () => ({ body: { issuer: `https://${newUuid()}.example.com`, audience: 'quarry' } }),
    },
    'GET /api/v1/identity_issuers/:identity_issuer': { table: ofApp, make: make.issuer },
    'PATCH /api/v1/identity_issuers/:identity_issuer': { table: ofApp, make: make.issuer },
    'DELETE /api/v1/identity_issuers/:identity_issuer': {
      table: ofApp,
      make: make.issuer,
      consumes: true,
    },
    'GET /api/v1/connected_assistants': { table: everybody },
    'GET /api/v1/connected_assistants/:connected_assistant': { table: users.tokens, make: make.assistant },
    'DELETE /api/v1/connected_assistants/:connected_assistant': {
      table: users.tokens,
      make: make.assistant,
      consumes: true,
    },
    // What users decide about is in test/api/mcp/oauth-attacks.test.ts.
    'GET /api/v1/assistant_request': {
      table: usersOnly,
      send: () => ({ path: '/api/v1/assistant_request?request=unknown' }),
    },
    'POST /api/v1/assistant_request': {
      table: usersOnly,
      send: () => ({ body: { request: 'unknown', decision: 'allow' } }),
    },
    'PATCH /api/v1/knowledge_documents/:document/acl': {
      table: sources.update,
      make: make.document,
      send: () => ({ body: { grants: [{ principal_type: 'everyone' }] } }),
    },
    'DELETE /api/v1/knowledge_documents/:document/acl': { table: sources.update, make: make.document },
  };
}

/** Users are told that this request of an assistant is not valid. */
const usersOnly = readMatrix(`
              users key  sandboxKey otherKey
  mine        422   403  403        403
`);
