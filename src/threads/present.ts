import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { Message } from './service.ts';
import type { ThreadRow } from './store.ts';

export function presentThread(row: ThreadRow) {
  return compact({
    id: formatId('thread', row.id),
    app: formatId('app', row.appId),
    title: row.title,
    org: row.orgId && formatId('org', row.orgId),
    team: row.teamId && formatId('team', row.teamId),
    user: row.userId && formatId('user', row.userId),
    agent: row.agentId && formatId('agent', row.agentId),
    sandbox: presentSandboxId(row.sandboxId),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}

export function presentMessage(message: Message) {
  return {
    id: formatId('message', message.id),
    thread: formatId('thread', message.threadId),
    content: message.content,
    metadata: message.metadata,
    created_at: iso(message.createdAt),
  };
}
