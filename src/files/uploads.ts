import type { Static } from 'typebox';
import type { Db } from '../db/database.ts';
import { defined } from '../lib/defined.ts';
import type { Caller } from '../tenancy/caller.ts';
import { type DigestCheck, readData, requireSharable } from './input.ts';
import { createLinkUploads, type UploadDeps } from './link-uploads.ts';
import { findMaker, insertMadeFile } from './of-runs.ts';
import { resolveFileOwner, resolveGrants } from './owners.ts';
import type { VisibleFile } from './reads.ts';
import type { fileCreateSchema, rawUploadQuery } from './schema.ts';
import * as store from './store.ts';
import { requireLength, writeStream } from './stream-write.ts';
import { type RecordFile, storeFile, writeFile } from './write.ts';

type StreamInput = Static<typeof rawUploadQuery> & {
  filename: string;
  contentType: string;
  digest: DigestCheck;
};

/** Creates files from requests: with their bytes in JSON, as a streamed body, or by an upload link. */
export function createFileUploads(deps: UploadDeps) {
  const { db } = deps;

  /** Validates an upload and prepares it for writing. */
  async function readUpload(caller: Caller, input: Static<typeof fileCreateSchema>) {
    const bytes = readData('data', input, caller.appId);
    if (input.share === true) requireSharable(input.content_type);
    const owned = await resolveFileOwner(db, caller, input);
    const grants = await resolveGrants(db, caller, [], input.acl ?? {});
    const maker = await findMaker(db, caller, input.automation_run);
    const { filename, content_type: contentType, share: shared = false } = input;
    const record: RecordFile = async (tx, row) => {
      await store.replaceGrants(tx, row.appId, row.id, grants);
      await insertMadeFile(tx, row, maker);
    };
    return { contents: { bytes, filename, contentType, shared }, owned, grants, record };
  }

  return {
    ...createLinkUploads(deps),

    async upload(caller: Caller, input: Static<typeof fileCreateSchema>): Promise<VisibleFile> {
      const { contents, owned, grants, record } = await readUpload(caller, input);
      return { file: await writeFile(deps, caller, contents, owned, record), grants };
    },

    /** The same in two steps: the slow part first, then `commit` in another transaction. */
    async prepareUpload(caller: Caller, input: Static<typeof fileCreateSchema>) {
      const { contents, owned, record } = await readUpload(caller, input);
      const stored = await storeFile(deps, caller, contents);
      return { commit: (tx: Db) => stored.commit(tx, owned, record), discard: stored.discard };
    },

    /**
     * Stores a body of any size up to the limit. `length` is the announced length, if any. `readMetadata` is called at
     * the end of the body; when it throws, nothing is stored.
     */
    async uploadStream(
      caller: Caller,
      input: StreamInput,
      length: number | undefined,
      body: AsyncIterable<Uint8Array>,
      readMetadata?: () => Record<string, unknown>,
    ): Promise<VisibleFile> {
      const { filename, contentType, share: shared = false, digest } = input;
      if (shared) requireSharable(contentType);
      const sizeMax = deps.uploadBytesMax;
      requireLength(length, sizeMax);
      const owned = await resolveFileOwner(db, caller, input);
      const maker = await findMaker(db, caller, input.automation_run);
      const contents = { filename, contentType, shared, sizeMax, ...defined({ checksum: digest.checksum }) };
      const record: RecordFile = async (tx, row) => {
        await insertMadeFile(tx, row, maker);
        if (readMetadata === undefined) return;
        row.providerMetadata = readMetadata();
        await store.updateFile(tx, row.appId, row.id, { providerMetadata: row.providerMetadata });
      };
      return { file: await writeStream(deps, caller, contents, owned, digest, body, record), grants: [] };
    },
  };
}
