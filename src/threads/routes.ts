import { bodyBudgets } from '../http/body/budgets.ts';
import { everyCaller, operators } from '../http/route/access.ts';
import { registerResource } from '../http/route/resource.ts';
import type { Api } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import { presentMessage, presentThread } from './present.ts';
import { messageResultSchema, messageSchema, threadCreateSchema, threadSchema, threadUpdateSchema } from './schema.ts';
import type { ThreadService } from './service.ts';

export function registerThreadRoutes(api: Api, { threads }: { threads: ThreadService }): void {
  registerResource(api, {
    path: '/threads',
    param: 'thread',
    ids: ['Thread', 'Threads'],
    words: ['a thread', 'threads'],
    tag: 'Threads',
    about: {
      create:
        'At most one of `user`, `team` and `agent` owns it. Its organisation is the one named, otherwise the owner’s.',
      list: 'All threads of the app or sandbox, newest first.',
      get: '404 outside the app or sandbox of the caller.',
      update: 'Changes the title. Omitted members keep their values.',
      remove: 'Permanent. Knowledge sources that name the thread stay, but no longer name it.',
    },
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

  api.app(everyCaller, {
    method: 'POST',
    path: '/api/v1/threads/:thread/messages',
    operationId: 'createThreadMessage',
    tag: 'Threads',
    summary: 'Post a message to a thread',
    description:
      'Every active thread/messages source of the thread’s agent ingests it as a document. 409 when all of them are paused.',
    params: Type.Object({ thread: Type.String() }),
    body: messageSchema,
    budget: bodyBudgets.message,
    responses: { 201: messageResultSchema },
    handler: async ({ caller, params, body }) => presentMessage(await threads.postMessage(caller, params.thread, body)),
  });
}
