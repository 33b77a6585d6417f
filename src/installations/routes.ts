import { operators } from '../http/route/access.ts';
import { registerResource } from '../http/route/resource.ts';
import type { Api } from '../http/route/route.ts';
import { hasScope } from '../tenancy/key-scopes.ts';
import { presentInstallation } from './present.ts';
import { installationCreateSchema, installationSchema, installationUpdateSchema } from './schema.ts';
import type { InstallationService } from './service.ts';
import type { InstallationRow } from './store.ts';

type InstallationRouteDeps = {
  installations: InstallationService;
  /** The secret URL of an installation's source, if it has one. */
  inboundUrl: (row: InstallationRow) => Promise<string | undefined>;
};

export function registerInstallationRoutes(api: Api, { installations, inboundUrl }: InstallationRouteDeps): void {
  registerResource(api, {
    path: '/installations',
    param: 'installation',
    ids: ['Installation', 'Installations'],
    words: ['an installation', 'installations'],
    tag: 'Installations',
    about: {
      create:
        'Also creates the agent’s knowledge source of this kind, in the same transaction. For `webhook/inbound`, the response contains the secret URL of the source.',
      list: 'All installations of the app or sandbox, newest first.',
      get: 'With the secret URL of a `webhook/inbound` source, unless the scopes of the key only allow reading.',
      update:
        'An installation has nothing to change: the body is an empty object, and the response is the installation.',
      remove: 'Permanent: its knowledge source and documents are deleted with it.',
    },
    schema: installationSchema,
    // Anyone who has the URL can add documents, so it is shown only to those who may.
    present: async (row, { scopes }) =>
      presentInstallation(row, hasScope(scopes, 'knowledge', false) ? await inboundUrl(row) : undefined),
    create: {
      callers: operators,
      body: installationCreateSchema,
      // The response contains the secret URL of the source.
      idempotency: ({ kind }) => (kind === 'webhook/inbound' ? 'credential' : 'kept'),
      run: installations.create,
    },
    list: { callers: operators, run: installations.list },
    get: { callers: operators, run: installations.get },
    // Nothing can change. The operation exists so that every resource has the same five operations.
    update: { callers: operators, body: installationUpdateSchema, run: (caller, id) => installations.get(caller, id) },
    remove: { callers: operators, run: installations.remove },
  });
}
