import { Type } from 'typebox';
import { production } from '../db/database.ts';
import { type FileLinks, presentPicture } from '../files/present.ts';
import { bodyBudgets } from '../http/budgets.ts';
import { compact, iso } from '../http/present.ts';
import { registerResource } from '../http/resource.ts';
import { type Api, everyCaller } from '../http/route.ts';
import { formatId } from '../ids.ts';
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
    schema: agentSchema,
    present: (row: AgentRow) => presentAgent(deps, row),
    create: { callers: everyCaller, body: agentCreateSchema, budget: bodyBudgets.document, run: agents.create },
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
    update: { callers: everyCaller, body: agentUpdateSchema, budget: bodyBudgets.document, run: agents.update },
    remove: { callers: everyCaller, run: agents.remove },
  });
}

async function presentAgent(deps: FileLinks, row: AgentRow) {
  const picture = {
    fileId: row.profilePictureFileId,
    contentType: row.pictureContentType,
    width: row.pictureWidth,
    height: row.pictureHeight,
  };
  return compact({
    id: formatId('agent', row.id),
    app: formatId('app', row.appId),
    name: row.name,
    lookup_key: row.lookupKey,
    description: row.description,
    identity: row.identity,
    default_model: row.defaultModel,
    email: row.email,
    phone_number: row.phoneNumber,
    originator: row.originator,
    profile_picture: await presentPicture(deps, row.appId, 'avatar', picture),
    metadata: row.metadata,
    org: row.orgId && formatId('org', row.orgId),
    team: row.teamId && formatId('team', row.teamId),
    user: row.userId && formatId('user', row.userId),
    sandbox: row.sandboxId === production ? null : formatId('sandbox', row.sandboxId),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}
