import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { Sandbox } from '../../api/generated.ts';
import { useSession } from '../../session.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Id } from '../../ui/copy.tsx';
import { FormDialog, nameField } from '../../ui/form-dialog.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { DeleteButton, ResourcePage } from '../../ui/resource-page.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

const sandboxesPath = '/protected/api/v1/developer/apps/{app}/sandboxes';

/** The sandboxes of the app: isolated copies for tests. */
export function SandboxesPage() {
  const { place, choose } = useSession();
  const app = place.app ?? '';
  const [{ page }, change] = useFilters({ page: '1' });
  const [renaming, setRenaming] = useState<Sandbox>();
  const query = { page: pageNumber(page) };
  const sandboxes = useApi(`GET ${sandboxesPath}`, { path: { app }, query }, { keep: true });
  const reload = () => refresh(`GET ${sandboxesPath}`);
  const columns: Column<Sandbox>[] = [
    {
      id: 'name',
      name: 'Sandbox',
      look: 'main',
      sort: ({ name }) => name,
      cell: ({ id, name }) => (
        <button type="button" className="as-link" onClick={() => choose({ app, sandbox: id })}>
          {name}
        </button>
      ),
    },
    { id: 'id', name: 'Id', cell: ({ id }) => <Id id={id} /> },
    { id: 'created', name: 'Created', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
    {
      id: 'actions',
      name: 'Actions',
      look: 'actions',
      cell: (one) => (
        <>
          <Button kind="quiet" aria-label={`Rename ${one.name}`} onClick={() => setRenaming(one)}>
            Rename
          </Button>
          <DeleteButton
            title={`Delete ${one.name}?`}
            action="Delete the sandbox"
            quiet={one.name}
            perform={async () => {
              const path = { app, sandbox: one.id };
              await call(`DELETE ${sandboxesPath}/{sandbox}`, { path });
              if (place.sandbox === one.id) choose({ app });
              reload();
            }}
          >
            This deletes everything in it: users, files, sources, automations and keys. This cannot be undone.
          </DeleteButton>
        </>
      ),
    },
  ];
  return (
    <>
      <ResourcePage<Sandbox>
        title="Sandboxes"
        lead="Isolated copies of the app for tests, each with its own users, keys and data."
        label="Sandboxes"
        loaded={sandboxes}
        columns={columns}
        rowId={({ id }) => id}
        empty="Create one to test in, then choose it in the menu and create a key for it."
        onPage={(next) => change({ page: String(next) })}
        create={{
          button: 'New sandbox',
          title: 'New sandbox',
          submit: 'Create the sandbox',
          fields: nameField,
          onSubmit: async (body) => {
            await call(`POST ${sandboxesPath}`, { path: { app }, body: body as { name: string } });
            reload();
          },
        }}
      />
      {renaming ? (
        <FormDialog
          title={`Rename ${renaming.name}`}
          submit="Rename"
          isChange
          fields={nameField}
          initial={renaming}
          onSubmit={async (body) => {
            const path = { app, sandbox: renaming.id };
            await call(`PATCH ${sandboxesPath}/{sandbox}`, { path, body });
            reload();
          }}
          onClose={() => setRenaming(undefined)}
        />
      ) : null}
    </>
  );
}
