import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { PersonalToken } from '../../api/generated.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog, Form } from '../../ui/dialog.tsx';
import { Field, fieldError } from '../../ui/field.tsx';
import { NumberField } from '../../ui/number-field.tsx';
import { Empty } from '../../ui/page.tsx';
import { refresh, useAction, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { Shown } from '../../ui/shown.tsx';
import { State } from '../../ui/state.tsx';
import { type Column, DataTable } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { ShownOnce } from './shown-once.tsx';

const list = 'GET /api/v1/users/{user}/tokens';

/** The personal tokens of one user. */
export function Tokens({ user }: { user: string }) {
  const [creating, setCreating] = useState(false);
  const tokens = useApi(list, { path: { user } });
  const columns: Column<PersonalToken>[] = [
    {
      id: 'name',
      name: 'Name',
      look: 'main',
      sort: (one) => one.name ?? '',
      cell: (one) => one.name ?? <code>{one.id}</code>,
    },
    { id: 'created', name: 'Created', sort: (one) => one.created_at, cell: (one) => <Time at={one.created_at} /> },
    {
      id: 'used',
      name: 'Last used',
      look: 'wide',
      sort: (one) => one.last_used_at ?? '',
      cell: (one) => <Time at={one.last_used_at} />,
    },
    {
      id: 'expires',
      name: 'Expires',
      sort: (one) => one.expires_at ?? '',
      cell: (one) => one.expires_at?.slice(0, 10) ?? 'never',
    },
    {
      id: 'actions',
      name: 'Actions',
      look: 'actions',
      cell: (token) =>
        token.revoked_at === undefined ? (
          <DeleteButton
            title={`Revoke ${token.name ?? 'this token'}?`}
            action="Revoke the token"
            label="Revoke"
            quiet={token.name ?? token.id}
            perform={async () => {
              await call('DELETE /api/v1/users/{user}/tokens/{token}', { path: { user, token: token.id } });
              refresh(list);
            }}
          >
            Requests with this token will fail.
          </DeleteButton>
        ) : (
          <State value="revoked" />
        ),
    },
  ];
  return (
    <>
      <Shown loaded={tokens}>
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="No tokens yet" action={<Button onClick={() => setCreating(true)}>Create a token</Button>}>
              A personal token lets a script or a tool act as the user, until it expires or is revoked.
            </Empty>
          ) : (
            <>
              <DataTable
                label="Personal tokens"
                columns={columns}
                rows={data}
                rowId={({ id }) => id}
                rowClass={(token) => (token.revoked_at === undefined ? '' : 'over')}
              />
              <div>
                <Button onClick={() => setCreating(true)}>New token</Button>
              </div>
            </>
          )
        }
      </Shown>
      {creating ? (
        <NewToken
          user={user}
          onClose={() => {
            setCreating(false);
            refresh(list);
          }}
        />
      ) : null}
    </>
  );
}

function NewToken({ user, onClose }: { user: string; onClose: () => void }) {
  const [name, setName] = useState('');
  const [days, setDays] = useState('30');
  const [token, setToken] = useState<string>();
  const create = useAction(async () => {
    const body = {
      ...{ type: 'personal' as const, expires_in_days: Number(days) },
      ...(name === '' ? {} : { name }),
    };
    setToken((await call('POST /api/v1/users/{user}/tokens', { path: { user }, body })).token);
  });
  if (token !== undefined) return <ShownOnce title="The new token" secret={token} onClose={onClose} />;
  return (
    <Dialog title="New personal token" onClose={onClose}>
      <Form
        submit="Create the token"
        busy={create.busy}
        error={create.error}
        shownFields={['name', 'expires_in_days']}
        onSubmit={() => create.run()}
        onCancel={onClose}
      >
        <Field label="Name" error={fieldError(create.error, 'name')}>
          {(id, described) => (
            <input id={id} {...described} value={name} onChange={(event) => setName(event.target.value)} />
          )}
        </Field>
        <NumberField
          label="Expires after"
          unit="days"
          error={fieldError(create.error, 'expires_in_days')}
          min={1}
          max={3650}
          required
          value={days}
          onChange={setDays}
        />
      </Form>
    </Dialog>
  );
}
