import { nobody } from '../db/database.ts';
import { invalidField } from '../lib/errors.ts';
import { type IdKind, parseId } from '../lib/ids.ts';
import { limits } from '../lib/limits.ts';
import type { Grant } from '../tenancy/visible.ts';

type PrincipalType = Grant['principalType'];

/** The principal of a grant: an id, a role, or everyone (the nil uuid and an empty role). */
type Principal = Omit<Grant, 'actions'>;

/** A requested change of a file's grants. `field` is the body member that names the principal. */
export type AclChange =
  | { kind: 'replace'; grants: Named<Grant>[] }
  | { kind: 'patch'; add: Named<Grant>[]; remove: Named<Principal>[] };

type Named<T> = T & { field: string };

const roles: readonly string[] = ['admin', 'member', 'viewer'];
const idKinds: Partial<Record<PrincipalType, IdKind>> = {
  user: 'user',
  team: 'team',
  org: 'org',
  agent: 'agent',
  group: 'group',
};

/** Grants as a body names them. A grant on a document needs no actions, because it only allows reading. */
type PrincipalInput = { principal_type: PrincipalType; principal?: string | undefined };
type GrantInput = PrincipalInput & { actions?: readonly string[] | undefined };
type AclInput = {
  grants?: readonly GrantInput[] | undefined;
  add?: readonly GrantInput[] | undefined;
  remove?: readonly PrincipalInput[] | undefined;
};

/**
 * Throws 422 on an invalid member. Does not check that the principals exist. `field` is the member that holds the
 * change; '' if it is the body itself.
 */
export function readAclChange(input: AclInput, field = 'acl'): AclChange {
  const { grants, add, remove } = input;
  const at = (member: string) => (field === '' ? member : `${field}.${member}`);
  if (grants !== undefined) {
    if (add !== undefined) throw invalidField(at('add'), 'cannot be combined with grants');
    if (remove !== undefined) throw invalidField(at('remove'), 'cannot be combined with grants');
    return { kind: 'replace', grants: grants.map((grant, index) => readGrant(grant, at(`grants.${index}`))) };
  }
  return {
    kind: 'patch',
    add: (add ?? []).map((grant, index) => readGrant(grant, at(`add.${index}`))),
    remove: (remove ?? []).map((removal, index) => readPrincipal(removal, at(`remove.${index}`))),
  };
}

function readGrant(input: GrantInput, field: string): Named<Grant> {
  return { ...readPrincipal(input, field), actions: [...new Set(input.actions ?? ['read'])] };
}

function readPrincipal(input: PrincipalInput, field: string): Named<Principal> {
  const { principal_type: principalType, principal } = input;
  const at = `${field}.principal`;
  if (principalType === 'everyone') {
    if (principal !== undefined) throw invalidField(at, 'cannot be combined with everyone');
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
 * The grants after a change, each principal once, in the order of first appearance. `remove` is applied first; `add`
 * extends the actions of an existing principal. Throws 422 for too many grants.
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

/** The principals of a change that have no grant yet. The caller checks that they exist. */
export function findNewPrincipals(before: readonly Grant[], change: AclChange): Named<Principal>[] {
  const known = new Set(before.map(principalKey));
  const named = change.kind === 'patch' ? [...change.remove, ...change.add] : change.grants;
  return named.filter((principal) => !known.has(principalKey(principal)));
}

function principalKey({ principalType, principalId, principalRole }: Principal): string {
  return `${principalType}/${principalId}/${principalRole}`;
}
