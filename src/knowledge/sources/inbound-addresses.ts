import { randomBytes } from 'node:crypto';
import type { Static } from 'typebox';
import type { Database } from '../../db/database.ts';
import { iso } from '../../http/route/present.ts';
import type { Clock } from '../../lib/clock.ts';
import { found, invalidField, notFound } from '../../lib/errors.ts';
import { readBase64url } from '../../tenancy/base64url.ts';
import type { Caller } from '../../tenancy/caller.ts';
import { digest, type Secrets } from '../../tenancy/secrets.ts';
import { generateWebhookSecret, isWebhookSecret } from '../../tenancy/signed-messages.ts';
import { findCreatableKind } from '../kinds/index.ts';
import { inboundOverlapSecondsDefault, type inboundSecretInputSchema, type inboundUrlSchema } from '../schema.ts';
import { getForChange } from './find.ts';
import * as inboundStore from './inbound-store.ts';
import type * as store from './store.ts';

type AddressDeps = { db: Database; clock: Clock; secrets: Secrets; baseUrl: () => string };

type InboundUrl = Static<typeof inboundUrlSchema>;
/** The secret URLs of sources, and the secrets that sign what is posted to them. */
export function createInboundAddresses({ db, clock, secrets, baseUrl }: AddressDeps) {
  const urlOf = (token: string) => `${baseUrl()}/api/v1/inbound/${token}`;

  function describe({ inboundSecret, inboundPreviousSecretUntil: until }: store.SourceRow, token: string): InboundUrl {
    const previous = until !== null && until > clock.now() ? { previous_secret_until: iso(until) } : {};
    return { url: urlOf(token), signed: inboundSecret !== null, ...previous };
  }

  async function getInbound(caller: Caller, id: string) {
    const source = await getForChange(db, caller, id, 'update');
    if (source.type !== 'webhook/inbound') throw notFound();
    return source;
  }

  /** A source with an inbound URL: posts become documents of it, or start a pull of a pulled one. */
  async function getWithUrl(caller: Caller, id: string) {
    const source = await getForChange(db, caller, id, 'update');
    if (source.type !== 'webhook/inbound' && !findCreatableKind(source.type)?.pull) throw notFound();
    return source;
  }

  return {
    /** The secret URL of an installation's source; undefined if it has none. */
    async urlOfInstallation(appId: string, installationId: string): Promise<string | undefined> {
      const token = await inboundStore.findTokenOfInstallation(db, appId, installationId);
      return token && urlOf(secrets.unwrap(token).plain.toString());
    },

    async getUrl(caller: Caller, id: string): Promise<InboundUrl> {
      const source = await getWithUrl(caller, id);
      if (!source.inboundToken) throw notFound();
      return describe(source, secrets.unwrap(source.inboundToken).plain.toString());
    },

    async rotate(caller: Caller, id: string): Promise<InboundUrl> {
      const source = await getWithUrl(caller, id);
      const inbound = newInbound(secrets, source.appId);
      await inboundStore.setInbound(db, source.appId, source.id, inbound);
      return describe(source, inbound.plain);
    },

    /** Requires signatures from now on. Returns the secret, which is shown only here. */
    async setSecret(caller: Caller, id: string, input: Static<typeof inboundSecretInputSchema>) {
      const { secret = generateWebhookSecret(), overlap_seconds: overlap = inboundOverlapSecondsDefault } = input;
      if (!isWebhookSecret(secret)) throw invalidField('secret', 'must be `whsec_` and 24 to 64 bytes in base64');
      const source = await getInbound(caller, id);
      const now = clock.now();
      const next = {
        secret: secrets.wrap(Buffer.from(secret)),
        previousUntil: new Date(now.getTime() + overlap * 1_000),
        now,
      };
      const { inboundPreviousSecretUntil: until } = found(await inboundStore.replaceInboundSecret(db, source, next));
      return { secret, ...(until === null ? {} : { previous_secret_until: iso(until) }) };
    },

    /** Accepts unsigned posts from now on. */
    async removeSecret(caller: Caller, id: string): Promise<void> {
      await inboundStore.removeInboundSecret(db, await getInbound(caller, id));
    },
  };
}

const prefix = 'whs_';
const uuidBytes = 16;

/** Generates a secret that contains the app, so that lookups never use the secret alone. */
export function newInbound(secrets: Secrets, appId: string): { digest: Buffer; token: Buffer; plain: string } {
  const app = Buffer.from(appId.replaceAll('-', ''), 'hex');
  const plain = `${prefix}${Buffer.concat([app, randomBytes(32)]).toString('base64url')}`;
  return { digest: digest(plain), token: secrets.wrap(Buffer.from(plain)), plain };
}

export function appOfToken(token: string): string | undefined {
  if (!token.startsWith(prefix)) return undefined;
  const bytes = readBase64url(token.slice(prefix.length));
  if (bytes?.length !== uuidBytes + 32) return undefined;
  const hex = bytes.subarray(0, uuidBytes).toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
