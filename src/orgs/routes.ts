import { Type } from 'typebox';
import { production } from '../db/database.ts';
import { type FileLinks, presentPicture } from '../files/present.ts';
import { bodyBudgets } from '../http/budgets.ts';
import { compact, iso } from '../http/present.ts';
import { registerResource } from '../http/resource.ts';
import { type Api, everyCaller, operators } from '../http/route.ts';
import { formatId } from '../ids.ts';
import { orgCreateSchema, orgSchema, orgUpdateSchema } from './schema.ts';
import type { OrgService } from './service.ts';
import type { OrgRow } from './store.ts';

/** End users read their own organisation; keys and developers manage all. */
export function registerOrgRoutes(api: Api, deps: FileLinks & { orgs: OrgService }): void {
  const { orgs } = deps;
  registerResource(api, {
    path: '/orgs',
    param: 'org',
    ids: ['Org', 'Orgs'],
    words: ['an organisation', 'organisations'],
    tag: 'Organisations',
    schema: orgSchema,
    present: (row: OrgRow) => presentOrg(deps, row),
    create: { callers: operators, body: orgCreateSchema, budget: bodyBudgets.document, run: orgs.create },
    list: { callers: everyCaller, query: Type.Object({ search: Type.Optional(Type.String()) }), run: orgs.list },
    get: { callers: everyCaller, run: orgs.get },
    update: { callers: operators, body: orgUpdateSchema, budget: bodyBudgets.document, run: orgs.update },
    remove: { callers: operators, run: orgs.remove },
  });
}

async function presentOrg(deps: FileLinks, row: OrgRow) {
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
    sandbox: row.sandboxId === production ? null : formatId('sandbox', row.sandboxId),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}
