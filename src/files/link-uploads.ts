import type { Static } from 'typebox';
import type { AuditActor } from '../http/route/audit.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { defined } from '../lib/defined.ts';
import { invalidField } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { limits } from '../lib/limits.ts';
import type { Caller } from '../tenancy/caller.ts';
import type { Credential } from '../tenancy/credential.ts';
import type { Credentials } from '../tenancy/credentials.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import { type DigestCheck, requireSharable } from './input.ts';
import { findMaker, insertMadeFile } from './of-runs.ts';
import { resolveFileOwner } from './owners.ts';
import type { VisibleFile } from './reads.ts';
import type { uploadLinkCreateSchema } from './schema.ts';
import { requireLength, writeStream } from './stream-write.ts';
import { actorOfLink, linkCreatorOf, redeemUpload, signUpload, type UploadClaims } from './upload-links.ts';
import type { RecordFile, WriteDeps } from './write.ts';

export type UploadDeps = WriteDeps & {
  clock: Clock;
  secrets: Secrets;
  uploadBytesMax: number;
  credentials: Pick<Credentials, 'findEnded'>;
};

/** Creates files by links, each of which uploads one file once. */
export function createLinkUploads(deps: UploadDeps) {
  const { db, clock, secrets } = deps;

  return {
    /** A token for uploading this file once, until it expires. */
    async createUploadLink(
      caller: Caller,
      input: Static<typeof uploadLinkCreateSchema>,
      credential: Credential | undefined,
    ): Promise<{ token: string; claims: UploadClaims }> {
      if (input.share === true) requireSharable(input.content_type);
      requireLength(input.size, deps.uploadBytesMax);
      const owned = await resolveFileOwner(db, caller, input);
      const runId = await findMaker(db, caller, input.automation_run);
      const claims: UploadClaims = {
        appId: caller.appId,
        sandboxId: caller.sandboxId,
        ...owned,
        id: newUuid(),
        filename: input.filename,
        contentType: input.content_type,
        shared: input.share ?? false,
        sizeMax: input.size ?? deps.uploadBytesMax,
        ...defined({ checksum: input.checksum?.toLowerCase(), runId }),
        expires: nowSeconds(clock) + (input.expires_in ?? limits.uploadLinkSecondsDefault),
        maker: linkCreatorOf(caller, credential),
        owner: { org: input.org, team: input.team, user: input.user, agent: input.agent },
      };
      return { token: signUpload(secrets, claims), claims };
    },

    /**
     * Stores the body as the file described by the token. 403 when the token is invalid or expired, or its creator may no
     * longer create that file; 409 when it was already used.
     */
    async uploadByLink(
      token: unknown,
      digest: DigestCheck,
      length: number | undefined,
      body: AsyncIterable<Uint8Array>,
      noteActor: (actor: AuditActor) => void,
    ): Promise<VisibleFile> {
      const claims = await redeemUpload(deps, token);
      noteActor(actorOfLink(claims));
      const { appId, sandboxId, id, filename, contentType, shared, sizeMax } = claims;
      requireLength(length, sizeMax);
      if (digest.checksum !== undefined && claims.checksum !== undefined && digest.checksum !== claims.checksum)
        throw invalidField('content-digest', 'does not match the digest in this link');
      const checksum = claims.checksum ?? digest.checksum;
      const contents = { id, filename, contentType, shared, sizeMax, ...defined({ checksum }) };
      const { orgId, teamId, userId, agentId } = claims;
      const owned = { orgId, teamId, userId, agentId };
      const record: RecordFile = (tx, row) => insertMadeFile(tx, row, claims.runId);
      const file = await writeStream(deps, { appId, sandboxId }, contents, owned, digest, body, record);
      return { file, grants: undefined };
    },
  };
}
