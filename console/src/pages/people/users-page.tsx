import { Link } from 'wouter';
import { call } from '../../api/client.ts';
import type { User } from '../../api/generated.ts';
import { PrincipalPicker } from '../../principals/picker.tsx';
import { PrincipalName } from '../../principals/principal-name.tsx';
import { useSession } from '../../session.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Id } from '../../ui/copy.tsx';
import type { FieldSpec } from '../../ui/form-dialog.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { ResourcePage } from '../../ui/resource-page.tsx';
import { SearchField } from '../../ui/search-field.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

export const orgRoles: [string, string][] = [
  ['', 'None'],
  ['admin', 'Admin: manages the organisation'],
  ['member', 'Member: reads and changes'],
  ['viewer', 'Viewer: reads'],
];

export const userFields: FieldSpec[] = [
  { name: 'email', label: 'E-mail', kind: 'email', required: true },
  { name: 'name', label: 'Name' },
  {
    name: 'password',
    label: 'Password',
    kind: 'password',
    hint: 'For sign-in with e-mail and password. Without one, the user needs tokens that you create.',
  },
  { name: 'org', label: 'Organisation', kind: 'principal', principals: ['org'], clearable: true },
  { name: 'org_role', label: 'Role in the organisation', kind: 'select', options: orgRoles },
];

const columns: Column<User>[] = [
  {
    id: 'name',
    name: 'User',
    look: 'main',
    sort: ({ name, email }) => name ?? email ?? '',
    cell: ({ id, name, email }) => <Link href={`/users/${id}`}>{name ?? email ?? id}</Link>,
  },
  { id: 'email', name: 'E-mail', sort: ({ email }) => email ?? '', cell: ({ email }) => email ?? '–' },
  {
    id: 'org',
    name: 'Organisation',
    cell: ({ org, org_role }) => (
      <span className="names">
        <PrincipalName id={org} /> {org_role === undefined ? '' : <span className="faint">{org_role}</span>}
      </span>
    ),
  },
  { id: 'id', name: 'Id', look: 'wide', cell: ({ id }) => <Id id={id} label={`…${id.slice(-6)}`} /> },
  { id: 'created', name: 'Created', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
];

/** The users of the app. */
export function UsersPage() {
  const { place } = useSession();
  const [{ page, q, org }, change] = useFilters({ page: '1', q: '', org: place.org ?? '' });
  const query = { page: pageNumber(page), ...(q === '' ? {} : { search: q }), ...(org === '' ? {} : { org }) };
  const users = useApi('GET /api/v1/users', { query }, { keep: true });
  return (
    <ResourcePage<User>
      title="Users"
      lead="The people that your app serves. Each sees their own resources, and those of their teams and organisation."
      label="Users"
      loaded={users}
      columns={columns}
      rowId={({ id }) => id}
      filtered={q !== '' || org !== ''}
      empty="Create the first user here, or with POST /api/v1/users from your server."
      onPage={(next) => change({ page: String(next) })}
      create={{
        button: 'New user',
        title: 'New user',
        submit: 'Create the user',
        fields: userFields,
        initial: { org: place.org },
        onSubmit: async (body) => {
          await call('POST /api/v1/users', { body: body as { email: string } });
          refresh('GET /api/v1/users');
        },
      }}
    >
      <SearchField
        label="Search users"
        placeholder="Name or e-mail"
        value={q}
        onChange={(next) => change({ q: next })}
      />
      <PrincipalPicker
        label="Organisation"
        kinds={['org']}
        any="All organisations"
        value={org}
        onChange={(next) => change({ org: next })}
      />
    </ResourcePage>
  );
}
