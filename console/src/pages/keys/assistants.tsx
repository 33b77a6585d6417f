import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { ConnectedAssistant } from '../../api/generated.ts';
import { PrincipalName } from '../../principals/principal-name.tsx';
import { useSession } from '../../session.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { Switch } from '../../ui/field.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { refresh, useAction, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { scopeWords } from './scopes.tsx';

const list = 'GET /api/v1/connected_assistants';

const columns: Column<ConnectedAssistant>[] = [
  { id: 'name', name: 'Assistant', look: 'main', sort: ({ name }) => name, cell: ({ name }) => name },
  { id: 'user', name: 'User', look: 'wide', cell: ({ user }) => <PrincipalName id={user} /> },
  {
    id: 'scopes',
    name: 'May use',
    cell: ({ scopes }) => <span title={scopeWords(scopes)}>{scopeWords(scopes)}</span>,
  },
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
  const { isDeveloper, place } = useSession();
  const [page, setPage] = useState(1);
  const query = { page, ...(user === undefined ? {} : { user }) };
  const found = useApi(list, { query }, { keep: true });
  return (
    <section>
      <div className="toolbar">
        <h2>Connected assistants</h2>
        {isDeveloper && user === undefined && place.app !== undefined ? <Allowed app={place.app} /> : null}
      </div>
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

/** Whether assistants may connect to the app at all, in production and in its sandboxes. */
function Allowed({ app }: { app: string }) {
  const path = { app };
  const loaded = useApi('GET /protected/api/v1/developer/apps/{app}', { path });
  const [asking, setAsking] = useState(false);
  const allow = useAction(
    async (assistants: boolean) =>
      loaded.replace(await call('PATCH /protected/api/v1/developer/apps/{app}', { path, body: { assistants } })),
    { refresh: [list] },
  );
  if (loaded.data === undefined) return null;
  return (
    <>
      <Switch
        label="Users may connect assistants"
        checked={loaded.data.assistants !== false}
        disabled={allow.busy}
        onChange={(on) => (on ? void allow.run(true) : setAsking(true))}
      />
      {asking ? (
        <Confirm
          title="Switch assistants off?"
          action="Switch them off"
          busy={allow.busy}
          error={allow.error}
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            if (await allow.run(false)) setAsking(false);
          }}
        >
          All assistants of the app are disconnected, in production and in sandboxes, and none can connect. Users have
          to connect them again when you switch it on.
        </Confirm>
      ) : (
        <ErrorNotice error={allow.error} />
      )}
    </>
  );
}
