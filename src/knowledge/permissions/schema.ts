import { ref, strict } from '../../http/route/route.ts';
import { jsonBytes } from '../../http/route/validation.ts';
import { limits } from '../../lib/limits.ts';
import { Type } from '../../lib/type.ts';

const principalTypes = ['user', 'team', 'group', 'org', 'org_role', 'agent', 'everyone'] as const;
const principal = {
  principal_type: Type.Enum(principalTypes, {
    description: '`org_role`: a role in the organisation of the source. `everyone`: every reader of the source.',
  }),
  principal: Type.Optional(Type.String({ description: 'An id, or the role for `org_role`. Omit it for `everyone`.' })),
};
const readGrantSchema = strict(
  {
    ...principal,
    actions: Type.Optional(
      Type.Array(Type.Literal('read'), { minItems: 1, maxItems: 1, description: 'Only `read`, the default.' }),
    ),
  },
  { $id: 'ReadGrant', description: 'Somebody among the readers of a source who sees a document.' },
);
const readGrants = Type.Array(ref(readGrantSchema), { maxItems: limits.aclGrantsMax });
export const aclSchema = strict(
  { grants: readGrants },
  {
    $id: 'DocumentAcl',
    ...jsonBytes(limits.metadataBytesMax),
    description:
      'Who among the readers of the source sees the document. Developers and secret keys always do. Without it, every reader does.',
  },
);
export const aclChangeSchema = strict(
  {
    grants: Type.Optional(readGrants),
    add: Type.Optional(readGrants),
    remove: Type.Optional(
      Type.Array(ref(strict(principal, { $id: 'ReadGrantRemoval', description: 'Whose grant is removed.' })), {
        maxItems: limits.aclGrantsMax,
      }),
    ),
  },
  {
    $id: 'DocumentAclChange',
    ...jsonBytes(limits.metadataBytesMax),
    description: 'Either `grants`, which replaces the list, or `add` and `remove`, which change it.',
  },
);
