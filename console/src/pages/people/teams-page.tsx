import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import type { Membership, Team } from '../../api/generated.ts';
import { PrincipalPicker } from '../../principals/picker.tsx';
import { PrincipalName } from '../../principals/principal-name.tsx';
import { useSession } from '../../session.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Id } from '../../ui/copy.tsx';
import { type FieldSpec, FormDialog } from '../../ui/form-dialog.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { refresh, useAction, useApi } from '../../ui/query.ts';
import { DeleteButton, ResourcePage } from '../../ui/resource-page.tsx';
import { SearchField } from '../../ui/search-field.tsx';
import { Shown } from '../../ui/shown.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

const fields: FieldSpec[] = [
  { name: 'name', label: 'Name', required: true },
  { name: 'description', label: 'Description', kind: 'long' },
  { name: 'org', label: 'Organisation', kind: 'principal', principals: ['org'] },
];
const roles = ['member', 'admin', 'owner'] as const;
type Role = (typeof roles)[number];

const columns: Column<Team>[] = [
  {
    id: 'name',
    name: 'Team',
    look: 'main',
    sort: ({ name }) => name,
    cell: ({ id, name }) => <Link href={`/teams/${id}`}>{name}</Link>,
  },
  { id: 'org', name: 'Organisation', cell: ({ org }) => <PrincipalName id={org} /> },
  { id: 'id', name: 'Id', look: 'wide', cell: ({ id }) => <Id id={id} label={`…${id.slice(-6)}`} /> },
  { id: 'created', name: 'Created', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
];

export function TeamsPage() {
  const { place, isDeveloper } = useSession();
  const [{ page, q }, change] = useFilters({ page: '1', q: '' });
  const query = { page: pageNumber(page), ...(q === '' ? {} : { search: q }) };
  const teams = useApi('GET /api/v1/teams', { query }, { keep: true });
  return (
    <ResourcePage<Team>
      title="Teams"
      lead="Users and agents that share resources."
      label="Teams"
      loaded={teams}
      columns={columns}
      rowId={({ id }) => id}
      filtered={q !== ''}
      empty="What belongs to a team is visible only to its members."
      onPage={(next) => change({ page: String(next) })}
      create={{
        button: 'New team',
        title: 'New team',
        submit: 'Create the team',
        fields,
        initial: { org: isDeveloper ? place.org : undefined },
        onSubmit: async (body) => {
          await call('POST /api/v1/teams', { body: body as { name: string } });
          refresh('GET /api/v1/teams');
        },
      }}
    >
      <SearchField label="Search teams" value={q} onChange={(next) => change({ q: next })} />
    </ResourcePage>
  );
}

export function TeamPage({ id }: { id: string }) {
  const path = { team: id };
  const team = useApi('GET /api/v1/teams/{team}', { path });
  const [editing, setEditing] = useState(false);
  const [, navigate] = useLocation();
  return (
    <Shown loaded={team}>
      {(found) => (
        <>
          <PageHead
            title={found.name}
            lead={
              <>
                {found.description} <Id id={found.id} />
              </>
            }
          >
            <Button onClick={() => setEditing(true)}>Edit</Button>
            <DeleteButton
              title={`Delete ${found.name}?`}
              action="Delete the team"
              perform={async () => {
                await call('DELETE /api/v1/teams/{team}', { path });
                refresh('GET /api/v1/teams');
                navigate('/teams');
              }}
            >
              This also deletes what belongs to the team. Its members stay. This cannot be undone.
            </DeleteButton>
          </PageHead>
          <h2>Members</h2>
          <AddMember team={id} />
          <Members team={id} />
          {editing ? (
            <FormDialog
              title="Edit the team"
              submit="Save"
              isChange
              fields={[...fields.slice(0, 2), { name: 'metadata', label: 'Metadata', kind: 'json' }]}
              initial={found}
              onSubmit={async (body) => team.replace(await call('PATCH /api/v1/teams/{team}', { path, body }))}
              onClose={() => setEditing(false)}
            />
          ) : null}
        </>
      )}
    </Shown>
  );
}

function AddMember({ team }: { team: string }) {
  const [member, setMember] = useState('');
  const [role, setRole] = useState<Role>('member');
  const add = useAction(
    async () => {
      const named = member.startsWith('agt_') ? { agent: member } : { user: member };
      await call('POST /api/v1/teams/{team}/members', { path: { team }, body: { ...named, role } });
      setMember('');
    },
    { say: 'Added to the team.', refresh: ['GET /api/v1/teams/{team}/members'] },
  );
  return (
    <>
      <div className="toolbar">
        <PrincipalPicker
          label="New member"
          kinds={['user', 'agent']}
          any="Choose a user or an agent"
          value={member}
          onChange={setMember}
        />
        <RoleSelect label="Role of the new member" value={role} onChange={setRole} />
        <Button busy={add.busy} disabled={member === ''} onClick={() => add.run()}>
          Add to the team
        </Button>
      </div>
      <ErrorNotice error={add.error} />
    </>
  );
}

function RoleSelect({ label, value, onChange }: { label: string; value: Role; onChange: (role: Role) => void }) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChange(event.target.value as Role)}>
      {roles.map((role) => (
        <option key={role}>{role}</option>
      ))}
    </select>
  );
}

function Members({ team }: { team: string }) {
  const [{ page }, change] = useFilters({ page: '1' });
  const members = useApi('GET /api/v1/teams/{team}/members', { path: { team }, query: { page: pageNumber(page) } });
  const nameOf = ({ user, agent, name }: Membership) => name ?? agent?.name ?? user?.name ?? user?.email ?? '';
  const set = useAction(
    async ({ id }: Membership, role: Role) => {
      await call('PATCH /api/v1/teams/{team}/members/{member}', { path: { team, member: id }, body: { role } });
    },
    { say: 'The role was changed.', refresh: ['GET /api/v1/teams/{team}/members'] },
  );
  const columns: Column<Membership>[] = [
    {
      id: 'name',
      name: 'Member',
      look: 'main',
      sort: nameOf,
      cell: (one) => <PrincipalName id={one.user?.id ?? one.agent?.id} />,
    },
    { id: 'type', name: 'Type', sort: ({ type }) => type, cell: ({ type }) => type },
    {
      id: 'role',
      name: 'Role',
      sort: ({ role }) => role,
      cell: (one) => (
        <RoleSelect label={`Role of ${nameOf(one)}`} value={one.role} onChange={(role) => set.run(one, role)} />
      ),
    },
    { id: 'joined', name: 'Joined', sort: (one) => one.joined_at, cell: (one) => <Time at={one.joined_at} /> },
    {
      id: 'actions',
      name: 'Actions',
      look: 'actions',
      cell: (one) => (
        <DeleteButton
          title="Remove from the team?"
          action="Remove"
          label="Remove"
          quiet={nameOf(one)}
          perform={async () => {
            await call('DELETE /api/v1/teams/{team}/members/{member}', { path: { team, member: one.id } });
            refresh('GET /api/v1/teams/{team}/members');
          }}
        >
          They no longer see what belongs to the team.
        </DeleteButton>
      ),
    },
  ];
  return (
    <>
      <ErrorNotice error={set.error} />
      <PagedTable
        label="Members"
        loaded={members}
        columns={columns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        empty={<Empty title="No members yet">Choose a user or an agent above.</Empty>}
      />
    </>
  );
}
