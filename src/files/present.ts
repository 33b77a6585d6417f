import type { BlobStore } from '../blob/blob-store.ts';
import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId, type IdKind } from '../lib/ids.ts';
import { type Capabilities, type CapabilityRole, type SignedLinks, signedLinkSeconds } from '../tenancy/capability.ts';
import type { Grant } from '../tenancy/visible.ts';
import { dispositionOf, isActive, isImage, isPicturable } from './media-types.ts';
import { type PictureRequest, picturePurpose } from './picture-request.ts';
import type { FileRow } from './store.ts';

export type FileLinks = {
  baseUrl: () => string;
  /** The base URL that serves the contents of files. */
  contentUrl: () => string;
  signedLinks: SignedLinks;
  capabilities: Capabilities;
  blobs: Pick<BlobStore, 'presignedUrl'>;
};

/** The headers of a download. Content that a browser could execute is never shown inline. */
export function downloadHeaders(file: Pick<FileRow, 'filename' | 'contentType'>): {
  contentType: string;
  contentDisposition: string;
} {
  const active = isActive(file.contentType);
  return {
    contentType: file.contentType,
    contentDisposition: dispositionOf(file.filename, active ? 'attachment' : 'inline'),
  };
}

/** The signed download URL of a file: of the blob store if it offers one, otherwise of this server. */
async function downloadUrl(deps: FileLinks, file: FileRow, now: Date): Promise<string> {
  const presigned = await deps.blobs.presignedUrl?.(file.blobKey, {
    expiresSeconds: signedLinkSeconds,
    ...downloadHeaders(file),
  });
  if (presigned !== undefined) return presigned;
  const expires = Math.floor(now.getTime() / 1000) + signedLinkSeconds;
  const signature = deps.signedLinks.signature('download', file.appId, file.id, expires);
  return `${deps.contentUrl()}/api/v1/files/${formatId('file', file.id)}/content?expires=${expires}&signature=${signature}`;
}

/** The permanent URL of a file in one role. */
async function capabilityUrl(deps: FileLinks, appId: string, fileId: string, role: CapabilityRole) {
  const token = await deps.capabilities.token(appId, fileId, role);
  return `${deps.contentUrl()}/api/v1/files/${formatId('file', fileId)}/${role}?token=${token}`;
}

/** The signed URL of a small picture, always of this server. The signature covers the size and the page. */
function pictureUrl(deps: FileLinks, file: FileRow, now: Date, picture: PictureRequest): string {
  const { width, format, page } = picture;
  const expires = Math.floor(now.getTime() / 1000) + signedLinkSeconds;
  const signature = deps.signedLinks.signature(picturePurpose(picture), file.appId, file.id, expires);
  const query = new URLSearchParams({
    ...{ width: String(width), format, ...(page === 1 ? {} : { page: String(page) }) },
    ...{ expires: String(expires), signature },
  });
  return `${deps.contentUrl()}/api/v1/files/${formatId('file', file.id)}/picture?${query.toString()}`;
}

/**
 * The JSON of a file. Pass `grants` only for callers with an owner's rights, and `picture` for a request for a small
 * picture.
 */
export async function presentFile(
  deps: FileLinks,
  file: FileRow,
  now: Date,
  grants?: readonly Grant[],
  picture?: PictureRequest,
) {
  const url = await downloadUrl(deps, file, now);
  const id = formatId('file', file.id);
  return compact({
    id,
    filename: file.filename,
    content_type: file.contentType,
    size: file.size,
    checksum: file.checksum.toString('hex'),
    url,
    picture_url: picture && isPicturable(file.contentType) ? pictureUrl(deps, file, now, picture) : null,
    share_url: file.shared ? await capabilityUrl(deps, file.appId, file.id, 'share') : null,
    shared: file.shared,
    image_source: isImage(file.contentType)
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
    sandbox: presentSandboxId(file.sandboxId),
    acl: grants && { grants: grants.map(presentGrant) },
    provider_metadata: file.providerMetadata,
    created_at: iso(file.createdAt),
    updated_at: iso(file.updatedAt),
  });
}

const principalKinds: Partial<Record<Grant['principalType'], IdKind>> = {
  user: 'user',
  team: 'team',
  org: 'org',
  agent: 'agent',
  group: 'group',
};

/** A grant as responses show it. */
export function presentGrant({ principalType, principalId, principalRole, actions }: Grant) {
  const kind = principalKinds[principalType];
  return compact({
    principal_type: principalType,
    principal: kind ? formatId(kind, principalId) : principalRole || null,
    actions: [...actions],
  });
}

/** The picture of an agent or an org. Its URL is a capability and changes only with the picture. */
type PictureRow = {
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
