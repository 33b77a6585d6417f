import type { Static } from 'typebox';
import type { Database, Db } from '../db/database.ts';
import { refuseDuplicate } from '../db/unique.ts';
import { deleteOwner } from '../deletions/service.ts';
import type { FileService, PictureInput } from '../files/service.ts';
import type { PageRequest } from '../http/route/pages.ts';
import { found } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { pathId } from '../tenancy/references.ts';
import type { orgCreateSchema, orgUpdateSchema } from './schema.ts';
import * as store from './store.ts';

export type OrgService = ReturnType<typeof createOrgService>;

export function createOrgService({ db, files }: { db: Database; files: FileService }) {
  async function get(caller: Caller, id: string): Promise<store.OrgRow> {
    return found(await store.findOrg(db, caller, pathId('org', id)));
  }

  /**
   * Writes the org and its logo in one transaction: null removes the logo, undefined keeps it. A new logo is a new file.
   * The old file is deleted, and with it its capability URL.
   */
  function beginWithLogo(
    caller: Caller,
    org: { id: string; logoFileId: string | null },
    logo: PictureInput | null | undefined,
    write: (tx: Db) => Promise<void>,
  ): Promise<void> {
    const { id, logoFileId: old } = org;
    return files.beginWithPicture(caller, 'logo', logo, async (tx, save) => {
      await write(tx);
      if (logo === undefined || (logo === null && old === null)) return;
      await store.setLogo(tx, caller, id, await save({ orgId: id, teamId: null, userId: null, agentId: null }));
      if (old !== null) await files.remove(tx, caller.appId, old);
    });
  }

  return {
    get,

    async create(caller: Caller, input: Static<typeof orgCreateSchema>): Promise<store.OrgRow> {
      const id = newUuid();
      await uniqueSlug(() =>
        beginWithLogo(caller, { id, logoFileId: null }, input.logo, (tx) =>
          store.insertOrg(tx, caller, { id, name: input.name, slug: input.slug ?? null }),
        ),
      );
      return found(await store.findOrg(db, caller, id));
    },

    list: (caller: Caller, page: PageRequest, query: { search?: string | undefined }) =>
      store.listOrgs(db, caller, page, query.search),

    async update(caller: Caller, id: string, input: Static<typeof orgUpdateSchema>): Promise<store.OrgRow> {
      const org = await get(caller, id);
      await uniqueSlug(() =>
        beginWithLogo(caller, org, input.logo, async (tx) => {
          if (input.name !== undefined || input.slug !== undefined) await store.updateOrg(tx, caller, org.id, input);
        }),
      );
      return found(await store.findOrg(db, caller, org.id));
    },

    async remove(caller: Caller, id: string): Promise<void> {
      const org = await get(caller, id);
      await deleteOwner(db, caller, 'org', org.id);
    },
  };
}

function uniqueSlug<T>(write: () => Promise<T>): Promise<T> {
  return refuseDuplicate(
    'orgs_slug',
    { field: 'slug', message: 'Another organisation already uses this slug.' },
    write,
  );
}
