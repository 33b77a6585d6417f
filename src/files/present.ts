import { production } from '../db/database.ts';
import { compact, iso } from '../http/present.ts';
import { formatId } from '../ids.ts';
import type { Capabilities, CapabilityRole, SignedLinks } from '../tenancy/capability.ts';
import type { FileRow } from './store.ts';

/** How long a signed download link works. */
export const signedLinkSeconds = 3600;

export type FileLinks = { baseUrl: () => string; signedLinks: SignedLinks; capabilities: Capabilities };

/** The signed download URL of a file on local storage. */
export function downloadUrl({ baseUrl, signedLinks }: FileLinks, file: FileRow, now: Date): string {
  const expires = Math.floor(now.getTime() / 1000) + signedLinkSeconds;
  const signature = signedLinks.signature('download', file.appId, file.id, expires);
  return `${baseUrl()}/api/v1/files/${formatId('file', file.id)}/content?expires=${expires}&signature=${signature}`;
}

/** The lasting URL that opens a file in one role. */
export async function capabilityUrl(deps: FileLinks, appId: string, fileId: string, role: CapabilityRole) {
  const token = await deps.capabilities.token(appId, fileId, role);
  return `${deps.baseUrl()}/api/v1/files/${formatId('file', fileId)}/${role}?token=${token}`;
}

/** A file as answers carry it. */
export async function presentFile(deps: FileLinks, file: FileRow, now: Date) {
  const url = downloadUrl(deps, file, now);
  const id = formatId('file', file.id);
  return compact({
    id,
    filename: file.filename,
    content_type: file.contentType,
    size: file.size,
    checksum: file.checksum.toString('hex'),
    url,
    share_url: file.shared ? await capabilityUrl(deps, file.appId, file.id, 'share') : null,
    shared: file.shared,
    image_source: file.contentType.toLowerCase().startsWith('image/')
      ? compact({
          file: id,
          url,
          refresh_url: `${deps.baseUrl()}/api/v1/files/${id}`,
          mime_type: file.contentType,
          width: file.width,
          height: file.height,
        })
      : null,
    app: formatId('app', file.appId),
    org: file.orgId && formatId('org', file.orgId),
    team: file.teamId && formatId('team', file.teamId, 'team'),
    user: file.userId && formatId('user', file.userId),
    agent: file.agentId && formatId('agent', file.agentId),
    sandbox: file.sandboxId === production ? null : formatId('sandbox', file.sandboxId),
    provider_metadata: file.providerMetadata,
    created_at: iso(file.createdAt),
    updated_at: iso(file.updatedAt),
  });
}

/** The picture of an agent or an org: its URL is the capability, so it stays the same while the picture does. */
export type PictureRow = {
  fileId: string | null;
  contentType: string | null;
  width: number | null;
  height: number | null;
};

export async function presentPicture(deps: FileLinks, appId: string, role: 'avatar' | 'org_logo', picture: PictureRow) {
  if (picture.fileId === null) return null;
  return compact({
    file: formatId('file', picture.fileId),
    url: await capabilityUrl(deps, appId, picture.fileId, role),
    mime_type: picture.contentType,
    width: picture.width,
    height: picture.height,
  });
}
