import type { Static } from 'typebox';
import { isLoopback } from '../config/loopback.ts';
import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import { requireSafeUrl } from '../content/fetch/safe-url.ts';
import type { Database } from '../db/database.ts';
import { refuseDuplicate } from '../db/unique.ts';
import type { PageRequest } from '../http/route/pages.ts';
import type { Clock } from '../lib/clock.ts';
import { found, invalidField } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import type { Caller, Scope } from '../tenancy/caller.ts';
import { fieldId, findOrg, findTeam, pathId } from '../tenancy/references.ts';
import { requireRoom } from '../tenancy/room.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import type { ClaimMapping, issuerCreateSchema, issuerUpdateSchema } from './schema.ts';
import * as store from './store.ts';

const issuersMax = 20;
const room = { things: 'issuers', max: issuersMax };

export type IdentityService = ReturnType<typeof createIdentityService>;

type IdentityDeps = { db: Database; clock: Clock; secrets: Secrets; fetcher: Pick<Fetcher, 'check'> };

/** Manages the issuers that an app trusts. */
export function createIdentityService(deps: IdentityDeps) {
  const { db, clock } = deps;
  return {
    async create(caller: Caller, input: Static<typeof issuerCreateSchema>): Promise<store.IssuerRow> {
      const { issuer, audience, ...rest } = input;
      checkUrl(deps.fetcher, 'issuer', issuer);
      const now = clock.now();
      const { appId, sandboxId } = caller;
      const empty = {
        appId,
        sandboxId,
        id: newUuid(),
        issuer,
        audience,
        jwksUrl: null,
        claims: {},
        createdAt: now,
        createsUsers: false,
        linksByEmail: false,
        clientId: null,
        clientSecret: null,
        updatedAt: now,
      };
      const row = await change(deps, caller, empty, rest);
      await refuseDuplicate(
        'identity_issuers_app_id_sandbox_id_issuer_key',
        { field: 'issuer', message: 'The app already has this issuer.' },
        () =>
          db.begin(async (tx) => {
            await requireRoom(tx, caller, room, () => store.countIssuers(tx, caller));
            await store.insertIssuer(tx, row);
          }),
      );
      return row;
    },

    list: (caller: Caller, page: PageRequest) => store.listIssuers(db, caller, page),

    get: async (caller: Caller, id: string) => found(await store.findIssuer(db, caller, pathId('identityIssuer', id))),

    async update(caller: Caller, id: string, input: Static<typeof issuerUpdateSchema>): Promise<store.IssuerRow> {
      const row = await change(
        deps,
        caller,
        found(await store.findIssuer(db, caller, pathId('identityIssuer', id))),
        input,
      );
      await store.updateIssuer(db, row);
      return row;
    },

    /** Deletes an issuer: its tokens are refused from now on. Users and accounts stay, in case it is added again. */
    async remove(caller: Caller, id: string): Promise<void> {
      found(await store.deleteIssuer(db, caller, pathId('identityIssuer', id)));
    },

    /** The issuers of the app that a publishable key belongs to. */
    async listOf(scope: Scope): Promise<store.IssuerRow[]> {
      const [rows] = await store.listIssuers(db, scope, { page: 1, pageSize: issuersMax, offset: 0 });
      return rows;
    },
  };
}

function checkUrl(fetcher: IdentityDeps['fetcher'], field: string, text: string): void {
  const url = requireSafeUrl(fetcher, field, text);
  if (url.protocol !== 'https:' && !isLoopback(url.hostname)) throw invalidField(field, 'must be https.');
  if (url.search !== '' || url.hash !== '') throw invalidField(field, 'must have no query or fragment.');
}

/** 422 if the mapping names an organisation or team of another app. */
async function checkMapping(db: Database, caller: Caller, { org, teams }: ClaimMapping): Promise<void> {
  for (const [value, id] of Object.entries(org?.values ?? {})) {
    const field = `claims.org.values.${value}`;
    if (!(await findOrg(db, caller, fieldId('org', field, id)))) throw invalidField(field, 'not found');
  }
  for (const [value, id] of Object.entries(teams?.values ?? {})) {
    const field = `claims.teams.values.${value}`;
    if (!(await findTeam(db, caller, fieldId('team', field, id)))) throw invalidField(field, 'not found');
  }
}

async function change(
  deps: IdentityDeps,
  caller: Caller,
  row: store.IssuerRow,
  input: Static<typeof issuerUpdateSchema>,
) {
  if (typeof input.jwks_url === 'string') checkUrl(deps.fetcher, 'jwks_url', input.jwks_url);
  if (input.claims !== undefined) await checkMapping(deps.db, caller, input.claims);
  const { console: client } = input;
  const secret = client?.client_secret;
  return {
    ...row,
    audience: input.audience ?? row.audience,
    jwksUrl: input.jwks_url === undefined ? row.jwksUrl : input.jwks_url,
    createsUsers: input.create_users ?? row.createsUsers,
    linksByEmail: input.link_by_email ?? row.linksByEmail,
    claims: input.claims ?? row.claims,
    ...(client === undefined
      ? {}
      : {
          clientId: client?.client_id ?? null,
          clientSecret: secret === undefined ? null : deps.secrets.wrap(Buffer.from(secret)),
        }),
    updatedAt: deps.clock.now(),
  };
}
