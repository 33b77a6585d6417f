import type { Static } from 'typebox';
import type { Database } from '../db/database.ts';
import { refuseDuplicate } from '../db/unique.ts';
import { found, notFound } from '../errors.ts';
import type { FileService, PictureInput } from '../files/service.ts';
import type { PageRequest } from '../http/pages.ts';
import { newUuid } from '../ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import { pathId } from '../tenancy/references.ts';
import type { orgCreateSchema, orgUpdateSchema } from './schema.ts';
import * as store from './store.ts';

export type OrgService = ReturnType<typeof createOrgService>;

export function createOrgService({ db, files }: { db: Database; files: FileService }) {
  async function get(caller: Caller, id: string): Promise<store.OrgRow> {
    const row = await store.findOrg(db, caller, pathId('org', id));
    if (!row) throw notFound();
    return row;
  }

  /** A new logo is a new file. The old file, and with it its capability URL, is deleted in the same transaction. */
  async function replaceLogo(caller: Caller, id: string, old: string | null, logo: PictureInput | null) {
    if (logo !== null) {
      const owned = { orgId: id, teamId: null, userId: null, agentId: null };
      await files.writePicture(caller, 'logo', logo, owned, async (tx, file) => {
        await store.setLogo(tx, caller, id, file.id);
        if (old !== null) await files.remove(tx, caller.appId, old);
      });
    } else if (old !== null) {
      await db.begin(async (tx) => {
        await store.setLogo(tx, caller, id, null);
        await files.remove(tx, caller.appId, old);
      });
    }
  }

  return {
    get,

    async create(caller: Caller, input: Static<typeof orgCreateSchema>): Promise<store.OrgRow> {
      if (input.logo) files.checkPicture('logo', input.logo);
      const id = newUuid();
      await uniqueSlug(() => store.insertOrg(db, caller, { id, name: input.name, slug: input.slug ?? null }));
      if (input.logo) await replaceLogo(caller, id, null, input.logo);
      return found(await store.findOrg(db, caller, id));
    },

    list: (caller: Caller, page: PageRequest, query: { search?: string | undefined }) =>
      store.listOrgs(db, caller, page, query.search),

    async update(caller: Caller, id: string, input: Static<typeof orgUpdateSchema>): Promise<store.OrgRow> {
      const org = await get(caller, id);
      if (input.logo) files.checkPicture('logo', input.logo);
      if (input.name !== undefined || input.slug !== undefined)
        await uniqueSlug(() => store.updateOrg(db, caller, org.id, input));
      if (input.logo !== undefined) await replaceLogo(caller, org.id, org.logoFileId, input.logo);
      return found(await store.findOrg(db, caller, org.id));
    },

    async remove(caller: Caller, id: string): Promise<void> {
      const org = await get(caller, id);
      await store.deleteOrg(db, caller, org.id);
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
