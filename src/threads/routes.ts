import { production } from '../db/database.ts';
import { compact, iso } from '../http/present.ts';
import { registerResource } from '../http/resource.ts';
import { type Api, operators } from '../http/route.ts';
import { formatId } from '../ids.ts';
import { threadCreateSchema, threadSchema, threadUpdateSchema } from './schema.ts';
import type { ThreadService } from './service.ts';
import type { ThreadRow } from './store.ts';

export function registerThreadRoutes(api: Api, { threads }: { threads: ThreadService }): void {
  registerResource(api, {
    path: '/threads',
    param: 'thread',
    ids: ['Thread', 'Threads'],
    words: ['a thread', 'threads'],
    tag: 'Threads',
    schema: threadSchema,
    present: presentThread,
    create: { callers: operators, body: threadCreateSchema, run: threads.create },
    list: { callers: operators, run: threads.list },
    get: { callers: operators, run: threads.get },
    update: {
      callers: operators,
      body: threadUpdateSchema,
      run: (caller, id, body) => threads.update(caller, id, body.title),
    },
    remove: { callers: operators, run: threads.remove },
  });
}

function presentThread(row: ThreadRow) {
  return compact({
    id: formatId('thread', row.id),
    app: formatId('app', row.appId),
    title: row.title,
    org: row.orgId && formatId('org', row.orgId),
    team: row.teamId && formatId('team', row.teamId),
    user: row.userId && formatId('user', row.userId),
    agent: row.agentId && formatId('agent', row.agentId),
    sandbox: row.sandboxId === production ? null : formatId('sandbox', row.sandboxId),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}
