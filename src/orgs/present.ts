import { type FileLinks, presentPicture } from '../files/present.ts';
import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { OrgRow } from './store.ts';

export async function presentOrg(deps: FileLinks, row: OrgRow) {
  const picture = {
    fileId: row.logoFileId,
    contentType: row.logoContentType,
    width: row.logoWidth,
    height: row.logoHeight,
  };
  return compact({
    id: formatId('org', row.id),
    app: formatId('app', row.appId),
    name: row.name,
    slug: row.slug,
    kind: 'company',
    logo: await presentPicture(deps, row.appId, 'org_logo', picture),
    sandbox: presentSandboxId(row.sandboxId),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}
