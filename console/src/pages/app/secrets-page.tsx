import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { AppSecret } from '../../api/generated.ts';
import { Button } from '../../ui/button.tsx';
import { type FieldSpec, FormDialog } from '../../ui/form-dialog.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { Shown } from '../../ui/shown.tsx';
import { type Column, DataTable } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

const nameField: FieldSpec = {
  name: 'name',
  label: 'Name',
  required: true,
  placeholder: 'CRM_TOKEN',
  hint: 'Graphs read it as $secrets.NAME.',
};
const valueField: FieldSpec = {
  name: 'value',
  label: 'Value',
  kind: 'password',
  required: true,
  hint: 'Stored encrypted. It cannot be read back, and journals do not contain it.',
};

/** The secrets that automations use. Their values can be written but not read. */
export function SecretsPage() {
  const [asking, setAsking] = useState<{ name?: string }>();
  const secrets = useApi('GET /api/v1/secrets');
  const columns: Column<AppSecret>[] = [
    { id: 'name', name: 'Name', look: 'main', sort: ({ name }) => name, cell: ({ name }) => <code>{name}</code> },
    { id: 'created', name: 'Created', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
    { id: 'changed', name: 'Changed', sort: (one) => one.updated_at, cell: (one) => <Time at={one.updated_at} /> },
    {
      id: 'actions',
      name: 'Actions',
      look: 'actions',
      cell: ({ name }) => (
        <>
          <Button kind="quiet" aria-label={`Replace ${name}`} onClick={() => setAsking({ name })}>
            Replace
          </Button>
          <DeleteButton
            title={`Delete ${name}?`}
            action="Delete the secret"
            quiet={name}
            perform={async () => {
              await call('DELETE /api/v1/secrets/{name}', { path: { name } });
              refresh('GET /api/v1/secrets');
            }}
          >
            Nodes that use it will fail. This cannot be undone.
          </DeleteButton>
        </>
      ),
    },
  ];
  const add = (
    <Button kind="primary" onClick={() => setAsking({})}>
      New secret
    </Button>
  );
  return (
    <>
      <PageHead title="Secrets" lead="Values for automations, such as tokens of other services.">
        {add}
      </PageHead>
      <Shown loaded={secrets}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No secrets yet" action={add}>
              A node reads a secret as <code>{'{{$secrets.NAME}}'}</code>, for example in the headers of an
              http_request.
            </Empty>
          ) : (
            <DataTable label="Secrets" columns={columns} rows={data} rowId={({ name }) => name} />
          )
        }
      </Shown>
      {asking ? (
        <FormDialog
          title={asking.name === undefined ? 'New secret' : `Replace ${asking.name}`}
          submit={asking.name === undefined ? 'Save the secret' : 'Replace'}
          fields={asking.name === undefined ? [nameField, valueField] : [valueField]}
          onSubmit={async ({ name = asking.name, value }) => {
            await call('PUT /api/v1/secrets/{name}', { path: { name: String(name) }, body: { value: String(value) } });
            refresh('GET /api/v1/secrets');
          }}
          onClose={() => setAsking(undefined)}
        />
      ) : null}
    </>
  );
}
