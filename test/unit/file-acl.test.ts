import assert from 'node:assert/strict';
import { test } from 'node:test';
import { applyAclChange, findNewPrincipals, readAclChange } from '../../src/files/acl.ts';
import { AppError } from '../../src/lib/errors.ts';
import { formatId, newUuid } from '../../src/lib/ids.ts';
import type { Grant } from '../../src/tenancy/visible.ts';

type AclInput = Parameters<typeof readAclChange>[0];

const [ann, bob] = [newUuid(), newUuid()];
const user = (id: string) => ({ principal_type: 'user' as const, principal: formatId('user', id) });
const grantOf = (id: string, ...actions: string[]): Grant => ({
  principalType: 'user',
  principalId: id,
  principalRole: '',
  actions,
});

function refusedField(input: AclInput): string | undefined {
  try {
    readAclChange(input);
  } catch (error) {
    assert.ok(error instanceof AppError && error.code === 'invalid_parameters');
    return error.fields[0]?.field;
  }
  return undefined;
}

test('grants replaces the whole list, and an empty one clears it', () => {
  const change = readAclChange({ grants: [{ ...user(bob), actions: ['read', 'read'] }] });
  assert.deepEqual(applyAclChange([grantOf(ann, 'write')], change), [grantOf(bob, 'read')]);
  assert.deepEqual(applyAclChange([grantOf(ann, 'write')], readAclChange({ grants: [] })), []);
});

test('add merges by principal, remove takes the principal away', () => {
  const before = [grantOf(ann, 'read'), grantOf(bob, 'read')];
  assert.deepEqual(applyAclChange(before, readAclChange({ add: [{ ...user(ann), actions: ['write'] }] })), [
    grantOf(ann, 'read', 'write'),
    grantOf(bob, 'read'),
  ]);
  assert.deepEqual(applyAclChange(before, readAclChange({ remove: [user(ann)] })), [grantOf(bob, 'read')]);
  assert.deepEqual(
    applyAclChange(before, readAclChange({ remove: [user(ann)], add: [{ ...user(ann), actions: ['custom'] }] })),
    [grantOf(bob, 'read'), grantOf(ann, 'custom')],
  );
  assert.deepEqual(applyAclChange(before, readAclChange({})), before);
});

test('the member that is wrong is named', () => {
  const everyone = { principal_type: 'everyone' as const };
  const role = { principal_type: 'org_role' as const };
  for (const [input, field] of [
    [{ grants: [], add: [] }, 'acl.add'],
    [{ grants: [], remove: [] }, 'acl.remove'],
    [{ grants: [{ ...everyone, principal: 'x', actions: ['read'] }] }, 'acl.grants.0.principal'],
    [{ add: [{ principal_type: 'user', actions: ['read'] }] }, 'acl.add.0.principal'],
    [{ add: [{ ...role, principal: 'owner', actions: ['read'] }] }, 'acl.add.0.principal'],
    [{ remove: [user(ann), role] }, 'acl.remove.1.principal'],
    [{ remove: [{ principal_type: 'team', principal: formatId('user', ann) }] }, 'acl.remove.0.principal'],
    [{ grants: [{ ...everyone, actions: ['read'] }] }, undefined],
    [{ grants: [{ ...role, principal: 'viewer', actions: ['read'] }] }, undefined],
  ] satisfies [AclInput, string | undefined][])
    assert.equal(refusedField(input), field, JSON.stringify(input));
});

test('only principals that the file does not know yet have to be found', () => {
  const change = readAclChange({ add: [{ ...user(bob), actions: ['read'] }], remove: [user(ann)] });
  assert.deepEqual(
    findNewPrincipals([grantOf(ann, 'read')], change).map((principal) => principal.field),
    ['acl.add.0.principal'],
  );
});
