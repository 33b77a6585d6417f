import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { ApiKey } from '../../api/generated.ts';
import { PrincipalPicker } from '../../principals/picker.tsx';
import { useSession } from '../../session.tsx';
import { pageNumber, useFilters } from '../../ui/address.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog, Form } from '../../ui/dialog.tsx';
import { Field, fieldError, Switch } from '../../ui/field.tsx';
import { Empty, PageHead } from '../../ui/page.tsx';
import { PagedTable } from '../../ui/paged-table.tsx';
import { refresh, useAction, useApi } from '../../ui/query.ts';
import { DeleteButton } from '../../ui/resource-page.tsx';
import { firstSteps, Snippets } from '../../ui/snippets.tsx';
import { State } from '../../ui/state.tsx';
import type { Column } from '../../ui/table.tsx';
import { Time } from '../../ui/time.tsx';
import { Assistants } from './assistants.tsx';
import { type Rights, Scopes, scopesOf } from './scopes.tsx';
import { ShownOnce } from './shown-once.tsx';
import { Tokens } from './tokens.tsx';

/** Keys of the app for its developer, and personal tokens of users. */
export function KeysPage() {
  const { isDeveloper, session } = useSession();
  const [{ user }, change] = useFilters({ user: '' });
  return (
    <>
      <PageHead
        title="Keys and tokens"
        lead={isDeveloper ? 'Credentials for programs and users.' : 'Credentials for your own programs.'}
      />
      {isDeveloper ? <Keys /> : null}
      <section>
        <div className="toolbar">
          <h2>Personal tokens</h2>
          {isDeveloper ? (
            <PrincipalPicker
              label="Whose tokens"
              kinds={['user']}
              any="Choose a user"
              value={user}
              onChange={(next) => change({ user: next })}
            />
          ) : null}
        </div>
        {isDeveloper && user === '' ? (
          <p className="faint">A personal token lets a program act as one user. Choose the user to see their tokens.</p>
        ) : (
          <Tokens key={user} user={isDeveloper ? user : (session.user?.id ?? 'me')} />
        )}
      </section>
      <Assistants />
    </>
  );
}

const columns: Column<ApiKey>[] = [
  { id: 'key', name: 'Key', look: 'main', cell: ({ hint }) => <code>{hint}…</code> },
  {
    id: 'name',
    name: 'Name',
    sort: ({ name }) => name ?? '',
    cell: ({ name }) => name ?? <span className="faint">–</span>,
  },
  {
    id: 'type',
    name: 'Type',
    sort: ({ type }) => type,
    cell: ({ type, scopes }) => (scopes === undefined ? type : `${type}: ${scopes.join(', ')}`),
  },
  {
    id: 'expires',
    name: 'Expires',
    sort: (one) => one.expires_at ?? '',
    cell: (one) => (one.expires_at === undefined ? 'never' : <Time at={one.expires_at} />),
  },
  {
    id: 'created',
    name: 'Created',
    look: 'wide',
    sort: (one) => one.created_at,
    cell: (one) => <Time at={one.created_at} />,
  },
  {
    id: 'used',
    name: 'Last used',
    look: 'wide',
    sort: (one) => one.last_used_at ?? '',
    cell: (one) => <Time at={one.last_used_at} />,
  },
  {
    id: 'actions',
    name: 'Actions',
    look: 'actions',
    cell: ({ id, name, hint, revoked_at }) =>
      revoked_at === undefined ? (
        <DeleteButton
          title={`Revoke ${name ?? `${hint}…`}?`}
          action="Revoke the key"
          label="Revoke"
          quiet={hint}
          perform={async () => {
            await call('DELETE /api/v1/keys/{key}', { path: { key: id } });
            refresh('GET /api/v1/keys');
          }}
        >
          Requests with this key will fail. This cannot be undone.
        </DeleteButton>
      ) : (
        <State value="revoked" />
      ),
  },
];

function Keys() {
  const { place } = useSession();
  const [{ page }, change] = useFilters({ page: '1' });
  const [creating, setCreating] = useState(false);
  const keys = useApi('GET /api/v1/keys', { query: { page: pageNumber(page) } }, { keep: true });
  return (
    <section>
      <div className="toolbar">
        <h2>API keys {place.sandbox === undefined ? 'of the app' : 'of the sandbox'}</h2>
        <Button kind="primary" onClick={() => setCreating(true)}>
          New key
        </Button>
      </div>
      <PagedTable
        label="API keys"
        loaded={keys}
        columns={columns}
        rowId={({ id }) => id}
        rowClass={(key) => (key.revoked_at === undefined ? '' : 'over')}
        onPage={(next) => change({ page: String(next) })}
        empty={
          <Empty title="No keys yet" action={<Button onClick={() => setCreating(true)}>Create the first key</Button>}>
            A secret key opens all of the app, for your server. A publishable key only lets users sign in.
          </Empty>
        }
      />
      {creating ? (
        <NewKey
          onClose={() => {
            setCreating(false);
            refresh('GET /api/v1/keys');
          }}
        />
      ) : null}
    </section>
  );
}

function NewKey({ onClose }: { onClose: () => void }) {
  const [type, setType] = useState<'secret' | 'publishable'>('secret');
  const [name, setName] = useState('');
  const [days, setDays] = useState('');
  const [limited, setLimited] = useState(false);
  const [rights, setRights] = useState<Rights>({});
  const [fullKey, setFullKey] = useState<string>();
  const create = useAction(async () => {
    const key = await call('POST /api/v1/keys', {
      body: {
        type,
        ...(name === '' ? {} : { name }),
        ...(days === '' ? {} : { expires_in_days: Number(days) }),
        ...(type === 'secret' && limited ? { scopes: scopesOf(rights) } : {}),
      },
    });
    setFullKey(key.full_key);
  });
  if (fullKey !== undefined)
    return (
      <ShownOnce title="The new key" secret={fullKey} onClose={onClose}>
        {type === 'secret' ? (
          <details>
            <summary>Try it</summary>
            <Snippets label="Upload a file" snippets={firstSteps(fullKey)} />
          </details>
        ) : null}
      </ShownOnce>
    );
  return (
    <Dialog title="New key" onClose={onClose}>
      <Form
        submit="Create the key"
        busy={create.busy}
        error={create.error}
        shownFields={['name', 'expires_in_days', 'scopes']}
        onSubmit={() => create.run()}
        onCancel={onClose}
      >
        <Field
          label="Name"
          hint="What the key is for, so that you know when to revoke it."
          error={fieldError(create.error, 'name')}
        >
          {(id, described) => (
            <input id={id} {...described} value={name} onChange={(event) => setName(event.target.value)} />
          )}
        </Field>
        <Field label="Expires" error={fieldError(create.error, 'expires_in_days')}>
          {(id, described) => (
            <select id={id} {...described} value={days} onChange={(event) => setDays(event.target.value)}>
              <option value="">Never</option>
              {[1, 7, 30, 90, 365].map((number) => (
                <option key={number} value={number}>
                  {number === 1 ? 'After a day' : `After ${number} days`}
                </option>
              ))}
            </select>
          )}
        </Field>
        <fieldset className="choices">
          <legend>Type</legend>
          <label>
            <input type="radio" name="type" checked={type === 'secret'} onChange={() => setType('secret')} />
            <span>
              <strong>Secret</strong>
              <span className="hint">
                The app, or a part of it. For servers only: never put it into a web page or mobile app.
              </span>
            </span>
          </label>
          <label>
            <input type="radio" name="type" checked={type === 'publishable'} onChange={() => setType('publishable')} />
            <span>
              <strong>Publishable</strong>
              <span className="hint">Identifies the app and only lets its users sign in.</span>
            </span>
          </label>
        </fieldset>
        {type === 'secret' ? (
          <>
            <Switch label="Only a part of the app" checked={limited} onChange={setLimited} />
            {limited ? (
              <Scopes rights={rights} error={fieldError(create.error, 'scopes')} onChange={setRights} />
            ) : null}
          </>
        ) : null}
      </Form>
    </Dialog>
  );
}
