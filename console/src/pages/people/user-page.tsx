import { useState } from 'react';
import { useLocation } from 'wouter';
import { call } from '../../api/client.ts';
import { PrincipalName } from '../../principals/principal-name.tsx';
import { Button } from '../../ui/button.tsx';
import { Json } from '../../ui/code.tsx';
import { Id } from '../../ui/copy.tsx';
import { FormDialog } from '../../ui/form-dialog.tsx';
import { Details, PageHead } from '../../ui/page.tsx';
import { refresh, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { Shown } from '../../ui/shown.tsx';
import { Time } from '../../ui/time.tsx';
import { EraseButton } from '../erasures/erase-button.tsx';
import { ExportButton } from '../erasures/export-button.tsx';
import { Assistants } from '../keys/assistants.tsx';
import { Tokens } from '../keys/tokens.tsx';
import { userFields } from './users-page.tsx';

const metadataField = { name: 'metadata', label: 'Metadata', kind: 'json' as const };

/** One user: their data, password, sessions and personal tokens. */
export function UserPage({ id }: { id: string }) {
  const path = { user: id };
  const user = useApi('GET /api/v1/users/{user}', { path });
  const [editing, setEditing] = useState(false);
  const [, navigate] = useLocation();
  return (
    <Shown loaded={user}>
      {(found) => (
        <>
          <PageHead title={found.name ?? found.email ?? found.id} lead={<Id id={found.id} />}>
            <Button onClick={() => setEditing(true)}>Edit</Button>
            <DeleteButton
              title="End every session?"
              action="End the sessions"
              label="End all sessions"
              perform={() => call('POST /api/v1/users/{user}/sessions/revoke', { path })}
            >
              This also revokes every token of the user. They have to sign in again.
            </DeleteButton>
            <DeleteButton
              title={`Delete ${found.email ?? found.id}?`}
              action="Delete the user"
              perform={async () => {
                await call('DELETE /api/v1/users/{user}', { path });
                refresh('GET /api/v1/users');
                navigate('/users');
              }}
            >
              This also deletes what belongs to the user alone. This cannot be undone.
            </DeleteButton>
          </PageHead>
          <section className="card">
            <Details
              rows={[
                ['E-mail', found.email],
                ['Name', found.name],
                ['Organisation', found.org ? <PrincipalName key="org" id={found.org} /> : null],
                ['Role', found.org_role],
                ['System user', found.is_system_user ? 'yes' : null],
                ['Created', <Time key="created" at={found.created_at} />],
                ['Changed', <Time key="changed" at={found.updated_at} />],
              ]}
            />
            {Object.keys(found.metadata).length === 0 ? null : <Json value={found.metadata} label="Metadata" />}
          </section>
          <section>
            <h2>Personal tokens</h2>
            <Tokens user={id} />
          </section>
          <Assistants user={id} />
          <section className="card">
            <h2>Everything about this user</h2>
            <p className="hint">
              The export is a ZIP archive of all that is stored about the user. An erasure deletes all of it, in
              indexes, journals and stored responses too, and ends with a signed certificate.
            </p>
            <div className="toolbar">
              <ExportButton user={found.id} />
              <EraseButton kind="user" id={found.id} name={found.email ?? found.name ?? found.id} />
            </div>
          </section>
          {editing ? (
            <FormDialog
              title="Edit the user"
              submit="Save"
              isChange
              fields={[...userFields, metadataField]}
              initial={found}
              onSubmit={async (body) => user.replace(await call('PATCH /api/v1/users/{user}', { path, body }))}
              onClose={() => setEditing(false)}
            />
          ) : null}
        </>
      )}
    </Shown>
  );
}
