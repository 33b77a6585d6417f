import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { IdentityIssuer } from '../../api/generated.ts';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Id } from '../../ui/copy.tsx';
import { type FieldSpec, FormDialog } from '../../ui/form-dialog.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { DeleteButton, ResourcePage } from '../../ui/resource-page.tsx';
import type { Column } from '../../ui/table.tsx';

const issuers = 'GET /api/v1/identity_issuers';

const issuerField: FieldSpec = {
  name: 'issuer',
  label: 'Issuer',
  required: true,
  placeholder: 'https://login.example.com',
  hint: 'Exactly as in its tokens.',
};
const otherFields: FieldSpec[] = [
  { name: 'audience', label: 'Audience', required: true, hint: 'The audience of tokens for this app.' },
  {
    name: 'jwks_url',
    label: 'Address of the keys',
    clearable: true,
    hint: 'Only when the issuer does not publish it in its discovery document.',
  },
  { name: 'create_users', label: 'Create a user for an unknown account', kind: 'switch' },
  { name: 'link_by_email', label: 'Link an unknown account to the user with its verified e-mail', kind: 'switch' },
  {
    name: 'claims',
    label: 'Claims',
    kind: 'json',
    hint: 'Which claims name the organisation, role, teams and name: {"org": {"claim": "org", "values": {"acme": "org_…"}}}.',
  },
  {
    name: 'console',
    label: 'Console sign-in',
    kind: 'json',
    clearable: true,
    hint: 'Lets users sign in to this console at the issuer: {"client_id": "…", "client_secret": "…"}.',
  },
];

/** OpenID Connect issuers whose users are users of the app. */
export function IssuersPage() {
  const [editing, setEditing] = useState<IdentityIssuer>();
  const [{ page }, change] = useFilters({ page: '1' });
  const found = useApi(issuers, { query: { page: pageNumber(page) } }, { keep: true });
  const columns: Column<IdentityIssuer>[] = [
    { id: 'issuer', name: 'Issuer', look: 'main', sort: ({ issuer }) => issuer, cell: ({ issuer }) => issuer },
    { id: 'audience', name: 'Audience', sort: ({ audience }) => audience, cell: ({ audience }) => audience },
    { id: 'users', name: 'Unknown accounts', cell: (one) => describeUnknown(one) },
    { id: 'console', name: 'Console', cell: (one) => (one.console === undefined ? 'No sign-in' : 'Sign-in') },
    { id: 'id', name: 'Id', look: 'wide', cell: ({ id }) => <Id id={id} label={`…${id.slice(-6)}`} /> },
    {
      id: 'actions',
      name: 'Actions',
      look: 'actions',
      cell: (one) => (
        <>
          <Button kind="quiet" aria-label={`Edit ${one.issuer}`} onClick={() => setEditing(one)}>
            Edit
          </Button>
          <DeleteButton
            title={`Delete ${one.issuer}?`}
            action="Delete the issuer"
            quiet={one.issuer}
            perform={async () => {
              await call('DELETE /api/v1/identity_issuers/{identity_issuer}', { path: { identity_issuer: one.id } });
              refresh(issuers);
            }}
          >
            Its tokens stop working. The users that it created stay.
          </DeleteButton>
        </>
      ),
    },
  ];
  return (
    <>
      <ResourcePage<IdentityIssuer>
        title="Identity issuers"
        lead="Sign-in at your identity provider: users send a token of an OpenID Connect issuer with the publishable key."
        label="Identity issuers"
        loaded={found}
        columns={columns}
        rowId={({ id }) => id}
        onPage={(next) => change({ page: String(next) })}
        empty="Add the issuer of your users’ tokens, such as Auth0, Keycloak or Entra ID."
        create={{
          button: 'New issuer',
          title: 'New identity issuer',
          submit: 'Add the issuer',
          fields: [issuerField, ...otherFields],
          onSubmit: async (body) => {
            await call('POST /api/v1/identity_issuers', { body: body as { issuer: string; audience: string } });
            refresh(issuers);
          },
        }}
      />
      {editing ? (
        <FormDialog
          title="Edit the issuer"
          lead={editing.issuer}
          submit="Save"
          isChange
          fields={otherFields}
          initial={editing}
          onSubmit={async (body) => {
            const path = { identity_issuer: editing.id };
            await call('PATCH /api/v1/identity_issuers/{identity_issuer}', { path, body });
            refresh(issuers);
          }}
          onClose={() => setEditing(undefined)}
        />
      ) : null}
    </>
  );
}

function describeUnknown({ create_users, link_by_email }: IdentityIssuer): string {
  if (link_by_email) return create_users ? 'Linked by e-mail, else created' : 'Linked by e-mail';
  return create_users ? 'Created' : 'Refused';
}
