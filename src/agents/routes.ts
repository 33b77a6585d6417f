import type { FileLinks } from '../files/present.ts';
import { bodyBudgets } from '../http/body/budgets.ts';
import { everyCaller } from '../http/route/access.ts';
import { registerResource } from '../http/route/resource.ts';
import type { Api } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import { presentAgent } from './present.ts';
import { agentCreateSchema, agentSchema, agentUpdateSchema } from './schema.ts';
import type { AgentService } from './service.ts';
import type { AgentRow } from './store.ts';

export function registerAgentRoutes(api: Api, deps: FileLinks & { agents: AgentService }): void {
  const { agents } = deps;
  registerResource(api, {
    path: '/agents',
    param: 'agent',
    ids: ['Agent', 'Agents'],
    words: ['an agent', 'agents'],
    tag: 'Agents',
    about: {
      create:
        'At most one of `team` and `user` owns it. Without an owner, it belongs to the calling user, or with a key to the app. 422 if the lookup key is taken.',
      list: 'Agents visible to the caller, newest first.',
      get: 'Accepts the id or the lookup key.',
      update:
        'Omitted members keep their values; `metadata` is replaced as a whole. A new picture replaces the old one, whose URL stops working; `null` removes it.',
      remove: 'Permanent: everything that the agent owns is deleted with it. Accepts the id or the lookup key.',
    },
    schema: agentSchema,
    present: (row: AgentRow) => presentAgent(deps, row),
    create: { callers: everyCaller, body: agentCreateSchema, budget: bodyBudgets.picture, run: agents.create },
    list: {
      callers: everyCaller,
      query: Type.Object({
        search: Type.Optional(Type.String({ description: 'Part of the name or the lookup key.' })),
        user: Type.Optional(Type.String({ description: 'Agents of this user.' })),
        org: Type.Optional(Type.String({ description: 'Agents of this organisation.' })),
      }),
      run: agents.list,
    },
    get: { callers: everyCaller, run: agents.get },
    update: { callers: everyCaller, body: agentUpdateSchema, budget: bodyBudgets.picture, run: agents.update },
    remove: { callers: everyCaller, run: agents.remove },
  });
}
