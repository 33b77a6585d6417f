import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { ConnectedAssistant } from '../../api/generated.ts';
import { PrincipalName } from '../../principals/principal-name.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';

const list = 'GET /api/v1/connected_assistants';

const columns: Column<ConnectedAssistant>[] = [
  { id: 'name', name: 'Assistant', look: 'main', sort: ({ name }) => name, cell: ({ name }) => name },
  { id: 'user', name: 'User', look: 'wide', cell: ({ user }) => <PrincipalName id={user} /> },
  { id: 'scopes', name: 'May use', cell: ({ scopes }) => scopes.join(', ') },
  { id: 'returns', name: 'Returns to', look: 'wide', cell: (one) => one.redirect_host },
  { id: 'used', name: 'Last used', sort: (one) => one.last_used_at, cell: (one) => <Time at={one.last_used_at} /> },
  {
    id: 'actions',
    name: 'Actions',
    look: 'actions',
    cell: ({ id, name }) => (
      <DeleteButton
        title={`Disconnect ${name}?`}
        action="Disconnect the assistant"
        label="Disconnect"
        quiet={name}
        perform={async () => {
          await call('DELETE /api/v1/connected_assistants/{connected_assistant}', {
            path: { connected_assistant: id },
          });
          refresh(list);
        }}
      >
        Its tokens stop working. It can ask to be connected again.
      </DeleteButton>
    ),
  },
];

/** The assistants that users allowed to use the MCP endpoint: of one user, or of all that the session may see. */
export function Assistants({ user }: { user?: string }) {
  const [page, setPage] = useState(1);
  const query = { page, ...(user === undefined ? {} : { user }) };
  const found = useApi(list, { query }, { keep: true });
  return (
    <section>
      <h2>Connected assistants</h2>
      <PagedTable
        label="Connected assistants"
        loaded={found}
        columns={columns}
        rowId={({ id }) => id}
        onPage={setPage}
        empty={<p className="faint">None. A program that signs in to the MCP endpoint appears here.</p>}
      />
    </section>
  );
}
