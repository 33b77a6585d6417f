import { registerResource } from '../http/resource.ts';
import { type Api, operators } from '../http/route.ts';
import { presentThread } from './present.ts';
import { threadCreateSchema, threadSchema, threadUpdateSchema } from './schema.ts';
import type { ThreadService } from './service.ts';

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
