import { operators } from '../http/route/access.ts';
import { pageOf, pageQuery, readPage } from '../http/route/pages.ts';
import { registerResource } from '../http/route/resource.ts';
import { type Api, ref } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import { presentApp, presentKey, presentSandbox } from './present.ts';
import {
  appCreateSchema,
  appSchema,
  appUpdateSchema,
  keyCreateSchema,
  keySchema,
  sandboxCreateSchema,
  sandboxSchema,
  sandboxUpdateSchema,
} from './schema.ts';
import type { AppService } from './service.ts';

const tag = 'Apps';
const developerApps = '/protected/api/v1/developer/apps';

/** Apps for their developers; sandboxes and keys also for secret keys. */
export function registerAppRoutes(api: Api, { apps }: { apps: AppService }): void {
  api.developer({
    method: 'POST',
    path: developerApps,
    operationId: 'createApp',
    tag,
    summary: 'Create an app',
    description: 'The developer who creates an app owns it. It has no keys yet: create one with `POST …/keys`.',
    body: appCreateSchema,
    responses: { 201: ref(appSchema) },
    handler: async ({ caller, body }) => presentApp(await apps.create(caller.developerId, body.name)),
  });
  api.developer({
    method: 'GET',
    path: developerApps,
    operationId: 'listApps',
    tag,
    summary: 'List your apps',
    description: 'The apps of the developer, newest first.',
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(ref(appSchema)) },
    handler: ({ caller, query }) =>
      readPage(
        query,
        (request) => apps.list(caller, request),
        (row) => presentApp({ ...row, runRetention: null, assistants: true }),
      ),
  });
  api.app(['developer'], {
    method: 'GET',
    path: `${developerApps}/:app`,
    operationId: 'getApp',
    tag,
    summary: 'Get an app',
    description: '404 for an app of another developer.',
    responses: { 200: ref(appSchema) },
    handler: async ({ caller }) => presentApp(await apps.get(caller)),
  });
  api.app(['developer'], {
    method: 'PATCH',
    path: `${developerApps}/:app`,
    operationId: 'updateApp',
    audit: 'durable',
    tag,
    summary: 'Rename an app or set its limits, how long runs are kept and whether assistants connect',
    description:
      'Omitted members keep their values. The limits apply to production and to each sandbox separately, from the next request on.',
    body: appUpdateSchema,
    responses: { 200: ref(appSchema) },
    handler: async ({ caller, body }) => presentApp(await apps.update(caller, body)),
  });
  registerSandboxRoutes(api, apps);
  registerKeyRoutes(api, apps);
}

function registerSandboxRoutes(api: Api, apps: AppService): void {
  registerResource(api, {
    path: '/sandboxes',
    param: 'sandbox',
    ids: ['Sandbox', 'Sandboxes'],
    words: ['a sandbox', 'sandboxes'],
    tag,
    about: {
      create:
        'A sandbox has its own users, files and other data, and its own usage and quotas. Sandboxes are managed from production: 403 inside a sandbox.',
      list: 'Newest first. 403 inside a sandbox.',
      get: '403 inside a sandbox.',
      update: 'Changes the name. Omitted members keep their values.',
      remove: 'Permanent: everything in the sandbox is deleted, and its keys stop working.',
    },
    schema: sandboxSchema,
    present: presentSandbox,
    create: {
      callers: operators,
      body: sandboxCreateSchema,
      run: (caller, body) => apps.createSandbox(caller, body.name),
    },
    list: { callers: operators, run: apps.listSandboxes },
    get: { callers: operators, run: apps.getSandbox },
    update: {
      callers: operators,
      body: sandboxUpdateSchema,
      run: (caller, id, body) => apps.updateSandbox(caller, id, body.name),
    },
    remove: { callers: operators, run: apps.removeSandbox },
  });
}

function registerKeyRoutes(api: Api, apps: AppService): void {
  registerResource(api, {
    path: '/keys',
    param: 'key',
    ids: ['Key', 'Keys'],
    words: ['an API key', 'API keys, including revoked ones'],
    tag,
    about: {
      create:
        '`full_key` is the key. It is shown only in this response. With `sandbox`, the key works only in that sandbox; a key created inside a sandbox works only there. With `scopes`, the key may do only what they allow: other requests return 403, and it cannot create keys. With the scope `people`, it can create tokens of users. Workflows need the scopes of all their nodes.',
      list: 'Newest first, with only the first characters of each key.',
      get: 'Without the key itself. A revoked key has `revoked_at`.',
      remove: 'Revokes the key: it stops working in every process within two seconds, and stays in the list.',
    },
    schema: keySchema,
    present: presentKey,
    create: { callers: operators, body: keyCreateSchema, idempotency: 'credential', run: apps.createKey },
    list: { callers: operators, run: apps.listKeys },
    get: { callers: operators, run: apps.getKey },
    remove: { callers: operators, run: apps.revokeKey },
  });
}
