import type { FileLinks } from '../files/present.ts';
import { bodyBudgets } from '../http/body/budgets.ts';
import { everyCaller, operators } from '../http/route/access.ts';
import { registerResource } from '../http/route/resource.ts';
import type { Api } from '../http/route/route.ts';
import { Type } from '../lib/type.ts';
import { presentOrg } from './present.ts';
import { orgCreateSchema, orgSchema, orgUpdateSchema } from './schema.ts';
import type { OrgService } from './service.ts';
import type { OrgRow } from './store.ts';

/** End users read their own organisation; keys and developers manage all organisations. */
export function registerOrgRoutes(api: Api, deps: FileLinks & { orgs: OrgService }): void {
  const { orgs } = deps;
  registerResource(api, {
    path: '/orgs',
    param: 'org',
    ids: ['Org', 'Orgs'],
    words: ['an organisation', 'organisations'],
    tag: 'Organisations',
    about: {
      create: '422 if the slug is taken. A logo is stored as a file with a permanent URL.',
      list: 'Newest first. End users see only their own organisation.',
      get: '404 for end users of another organisation.',
      update:
        'Omitted members keep their values. A new logo replaces the old one, whose URL stops working; `null` removes it. 422 if the slug is taken.',
      remove:
        'Permanent. Resources that belong only to the organisation are deleted. Its users and teams stay, with what they own, but no longer belong to an organisation.',
    },
    schema: orgSchema,
    present: (row: OrgRow) => presentOrg(deps, row),
    create: { callers: operators, body: orgCreateSchema, budget: bodyBudgets.picture, run: orgs.create },
    list: { callers: everyCaller, query: Type.Object({ search: Type.Optional(Type.String()) }), run: orgs.list },
    get: { callers: everyCaller, run: orgs.get },
    update: { callers: operators, body: orgUpdateSchema, budget: bodyBudgets.picture, run: orgs.update },
    remove: { callers: operators, run: orgs.remove },
  });
}
