import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import type { Org } from '../../api/generated.ts';
import { useSession } from '../../session.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Id } from '../../ui/copy.tsx';
import { type FieldSpec, FormDialog } from '../../ui/form-dialog.tsx';
import { Details, PageHead } from '../../ui/page.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { DeleteButton, ResourcePage } from '../../ui/resource-page.tsx';
import { SearchField } from '../../ui/search-field.tsx';
import { Shown } from '../../ui/shown.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

const fields: FieldSpec[] = [
  { name: 'name', label: 'Name', required: true },
  { name: 'slug', label: 'Short name', hint: 'Your own name for it, unique in the app.' },
];

const columns: Column<Org>[] = [
  {
    id: 'name',
    name: 'Organisation',
    look: 'main',
    sort: ({ name }) => name,
    cell: ({ id, name }) => <Link href={`/orgs/${id}`}>{name}</Link>,
  },
  { id: 'slug', name: 'Short name', sort: ({ slug }) => slug ?? '', cell: ({ slug }) => slug ?? '–' },
  { id: 'id', name: 'Id', look: 'wide', cell: ({ id }) => <Id id={id} label={`…${id.slice(-6)}`} /> },
  { id: 'created', name: 'Created', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
];

export function OrgsPage() {
  const { isDeveloper } = useSession();
  const [{ page, q }, change] = useFilters({ page: '1', q: '' });
  const query = { page: pageNumber(page), ...(q === '' ? {} : { search: q }) };
  const orgs = useApi('GET /api/v1/orgs', { query }, { keep: true });
  return (
    <ResourcePage<Org>
      title="Organisations"
      lead="Companies and other groups of your users. What belongs to an organisation is visible to all its members."
      label="Organisations"
      loaded={orgs}
      columns={columns}
      rowId={({ id }) => id}
      filtered={q !== ''}
      empty="An organisation groups users, teams and agents. Many apps have one for each customer."
      onPage={(next) => change({ page: String(next) })}
      create={
        isDeveloper
          ? {
              button: 'New organisation',
              title: 'New organisation',
              submit: 'Create the organisation',
              fields,
              onSubmit: async (body) => {
                await call('POST /api/v1/orgs', { body: body as { name: string } });
                refresh('GET /api/v1/orgs');
              },
            }
          : undefined
      }
    >
      <SearchField label="Search organisations" value={q} onChange={(next) => change({ q: next })} />
    </ResourcePage>
  );
}

/** One organisation, with links to its users, teams and agents. */
export function OrgPage({ id }: { id: string }) {
  const { isDeveloper } = useSession();
  const path = { org: id };
  const org = useApi('GET /api/v1/orgs/{org}', { path });
  const [editing, setEditing] = useState(false);
  const [, navigate] = useLocation();
  return (
    <Shown loaded={org}>
      {(found) => (
        <>
          <PageHead title={found.name} lead={<Id id={found.id} />}>
            {isDeveloper ? (
              <>
                <Link className="button plain" href={`/users?org=${id}`}>
                  Users
                </Link>
                <Link className="button plain" href={`/agents?org=${id}`}>
                  Agents
                </Link>
                <Button onClick={() => setEditing(true)}>Edit</Button>
                <DeleteButton
                  title={`Delete ${found.name}?`}
                  action="Delete the organisation"
                  perform={async () => {
                    await call('DELETE /api/v1/orgs/{org}', { path });
                    refresh('GET /api/v1/orgs');
                    navigate('/orgs');
                  }}
                >
                  This also deletes what belongs to the organisation. Its users stay, without an organisation. This
                  cannot be undone.
                </DeleteButton>
              </>
            ) : null}
          </PageHead>
          <section className="card">
            {found.logo?.url === undefined ? null : <img src={found.logo.url} alt="Logo" height="64" />}
            <Details
              rows={[
                ['Short name', found.slug],
                ['Created', <Time key="created" at={found.created_at} />],
                ['Changed', <Time key="changed" at={found.updated_at} />],
              ]}
            />
          </section>
          {editing ? (
            <FormDialog
              title="Edit the organisation"
              submit="Save"
              isChange
              fields={fields}
              initial={found}
              onSubmit={async (body) => org.replace(await call('PATCH /api/v1/orgs/{org}', { path, body }))}
              onClose={() => setEditing(false)}
            />
          ) : null}
        </>
      )}
    </Shown>
  );
}
