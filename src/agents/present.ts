import { type FileLinks, presentPicture } from '../files/present.ts';
import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { AgentRow } from './store.ts';

export async function presentAgent(deps: FileLinks, row: AgentRow) {
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
    sandbox: presentSandboxId(row.sandboxId),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}
