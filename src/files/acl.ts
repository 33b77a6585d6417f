import type { Static } from 'typebox';
import { nobody } from '../db/database.ts';
import { invalidField } from '../errors.ts';
import { type IdKind, parseId } from '../ids.ts';
import { limits } from '../limits.ts';
import type { Grant } from '../tenancy/visible.ts';
import type { aclInputSchema, grantSchema, removalSchema } from './schema.ts';

type PrincipalType = Grant['principalType'];

/** Whom a grant is for: an id, a role, or everyone (then the id is the nil uuid and the role empty). */
type Principal = Omit<Grant, 'actions'>;

/** What a request wants of a file's grants. `field` is the member of the body that named the principal. */
type AclChange =
  | { kind: 'replace'; grants: Named<Grant>[] }
  | { kind: 'patch'; add: Named<Grant>[]; remove: Named<Principal>[] };

type Named<T> = T & { field: string };

const roles: readonly string[] = ['admin', 'member', 'viewer'];
const idKinds: Partial<Record<PrincipalType, IdKind>> = { user: 'user', team: 'team', org: 'org', agent: 'agent' };

/** Throws 422 on the member that is wrong. Whether the principals exist is not looked at. */
export function readAclChange(input: Static<typeof aclInputSchema>, field = 'acl'): AclChange {
  const { grants, add, remove } = input;
  if (grants !== undefined) {
    if (add !== undefined) throw invalidField(`${field}.add`, 'cannot be sent beside grants');
    if (remove !== undefined) throw invalidField(`${field}.remove`, 'cannot be sent beside grants');
    return { kind: 'replace', grants: grants.map((grant, index) => readGrant(grant, `${field}.grants.${index}`)) };
  }
  return {
    kind: 'patch',
    add: (add ?? []).map((grant, index) => readGrant(grant, `${field}.add.${index}`)),
    remove: (remove ?? []).map((removal, index) => readPrincipal(removal, `${field}.remove.${index}`)),
  };
}

function readGrant(input: Static<typeof grantSchema>, field: string): Named<Grant> {
  return { ...readPrincipal(input, field), actions: [...new Set(input.actions)] };
}

function readPrincipal(input: Static<typeof removalSchema>, field: string): Named<Principal> {
  const { principal_type: principalType, principal } = input;
  const at = `${field}.principal`;
  if (principalType === 'everyone') {
    if (principal !== undefined) throw invalidField(at, 'cannot be sent with everyone');
    return { principalType, principalId: nobody, principalRole: '', field: at };
  }
  if (principal === undefined) throw invalidField(at, 'is required');
  if (principalType === 'org_role') {
    if (!roles.includes(principal)) throw invalidField(at, `must be one of ${roles.join(', ')}`);
    return { principalType, principalId: nobody, principalRole: principal, field: at };
  }
  const kind = idKinds[principalType];
  const id = kind === undefined ? undefined : parseId(kind, principal);
  if (id === undefined) throw invalidField(at, 'is not an id of the right type');
  return { principalType, principalId: id, principalRole: '', field: at };
}

/**
 * The grants after a change, each principal once, in the order in which they first came: `add` gives an old principal
 * the new actions beside its own, and `remove` goes first. Throws 422 when there would be too many.
 */
export function applyAclChange(before: readonly Grant[], change: AclChange): Grant[] {
  const after = new Map<string, Grant>();
  if (change.kind === 'patch') {
    for (const grant of before) after.set(principalKey(grant), grant);
    for (const principal of change.remove) after.delete(principalKey(principal));
  }
  for (const { principalType, principalId, principalRole, actions } of change.kind === 'patch'
    ? change.add
    : change.grants) {
    const principal = { principalType, principalId, principalRole };
    const known = after.get(principalKey(principal))?.actions ?? [];
    after.set(principalKey(principal), { ...principal, actions: [...new Set([...known, ...actions])] });
  }
  if (after.size > limits.aclGrantsMax) throw invalidField('acl', `has more than ${limits.aclGrantsMax} grants`);
  const grants = [...after.values()];
  if (Buffer.byteLength(JSON.stringify(grants)) > limits.metadataBytesMax)
    throw invalidField('acl', `is larger than ${limits.metadataBytesMax} bytes`);
  return grants;
}

/** The principals that a change names and the file's grants do not know yet: those have to exist. */
export function newPrincipals(before: readonly Grant[], change: AclChange): Named<Principal>[] {
  const known = new Set(before.map(principalKey));
  const named = change.kind === 'patch' ? [...change.remove, ...change.add] : change.grants;
  return named.filter((principal) => !known.has(principalKey(principal)));
}

function principalKey({ principalType, principalId, principalRole }: Principal): string {
  return `${principalType}/${principalId}/${principalRole}`;
}
