import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { ApiKey, PersonalToken } from '../../api/generated.ts';
import { useSession } from '../../session.tsx';
import {
  Button,
  Copy,
  Empty,
  Field,
  fieldError,
  PageHead,
  Pager,
  Shown,
  State,
  Table,
  Time,
} from '../../ui/basics.tsx';
import { Confirm, Dialog, Form } from '../../ui/dialog.tsx';
import { useAction, useLoad } from '../../ui/use-load.ts';
import { UserPicker } from '../kv/kv-page.tsx';

/** Keys of the app for its developer, and personal tokens of users. */
export function KeysPage() {
  const { isDeveloper, session } = useSession();
  const [user, setUser] = useState('');
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
          {isDeveloper ? <UserPicker label="Whose tokens" any="Choose a user" value={user} onChange={setUser} /> : null}
        </div>
        {isDeveloper && user === '' ? (
          <p className="faint">A personal token lets a program act as one user. Choose the user to see their tokens.</p>
        ) : (
          <Tokens key={user} user={isDeveloper ? user : (session.user?.id ?? 'me')} />
        )}
      </section>
    </>
  );
}

function Keys() {
  const { place } = useSession();
  const [page, setPage] = useState(1);
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<ApiKey>();
  const keys = useLoad(String(page), () => call('GET /api/v1/keys', { query: { page } }));
  const revoke = useAction(async (key: ApiKey) => {
    await call('DELETE /api/v1/keys/{key}', { path: { key: key.id } });
    setRevoking(undefined);
    keys.reload();
  });
  return (
    <section>
      <div className="toolbar">
        <h2>API keys {place.sandbox === undefined ? 'of the app' : 'of the sandbox'}</h2>
        <Button kind="primary" onClick={() => setCreating(true)}>
          New key
        </Button>
      </div>
      <Shown loaded={keys}>
        {(list) =>
          list.data.length === 0 ? (
            <Empty title="No keys yet" action={<Button onClick={() => setCreating(true)}>Create the first key</Button>}>
              A secret key opens all of the app, for your server. A publishable key only lets users sign in.
            </Empty>
          ) : (
            <>
              <Table columns={['Key', 'Name', 'Type', 'Created', 'Last used', { name: 'Actions', look: 'hidden' }]}>
                {list.data.map((key) => (
                  <tr key={key.id} className={key.revoked_at === undefined ? '' : 'over'}>
                    <td className="main">
                      <code>{key.hint}…</code>
                    </td>
                    <td>{key.name ?? <span className="faint">–</span>}</td>
                    <td>{key.type}</td>
                    <td>
                      <Time at={key.created_at} />
                    </td>
                    <td className="wide-only">
                      <Time at={key.last_used_at} />
                    </td>
                    <td className="row-actions">
                      {key.revoked_at === undefined ? (
                        <Button kind="quiet" aria-label={`Revoke ${key.hint}`} onClick={() => setRevoking(key)}>
                          Revoke
                        </Button>
                      ) : (
                        <State value="revoked" />
                      )}
                    </td>
                  </tr>
                ))}
              </Table>
              <Pager page={list} onPage={setPage} />
            </>
          )
        }
      </Shown>
      {creating ? (
        <NewKey
          onClose={() => {
            setCreating(false);
            keys.reload();
          }}
        />
      ) : null}
      {revoking ? (
        <Confirm
          title={`Revoke ${revoking.name ?? `${revoking.hint}…`}?`}
          action="Revoke the key"
          busy={revoke.busy}
          error={revoke.error}
          onConfirm={() => revoke.run(revoking)}
          onClose={() => setRevoking(undefined)}
        >
          Requests with this key fail from now on. This cannot be undone.
        </Confirm>
      ) : null}
    </section>
  );
}

function NewKey({ onClose }: { onClose: () => void }) {
  const [type, setType] = useState<'secret' | 'publishable'>('secret');
  const [name, setName] = useState('');
  const [made, setMade] = useState<string>();
  const create = useAction(async () => {
    const key = await call('POST /api/v1/keys', { body: { type, ...(name === '' ? {} : { name }) } });
    setMade(key.full_key);
  });
  if (made !== undefined) return <ShownOnce title="The new key" secret={made} onClose={onClose} />;
  return (
    <Dialog title="New key" onClose={onClose}>
      <Form
        submit="Create the key"
        busy={create.busy}
        error={create.error}
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
        <fieldset className="choices">
          <legend>Type</legend>
          <label>
            <input type="radio" name="type" checked={type === 'secret'} onChange={() => setType('secret')} />
            <span>
              <strong>Secret</strong>
              <span className="hint">
                Full access to the app. For servers only: never put it into a web page or mobile app.
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
      </Form>
    </Dialog>
  );
}

/** Shows a secret once. */
function ShownOnce({ title, secret, onClose }: { title: string; secret: string; onClose: () => void }) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p className="notice">Copy it now. It is not shown again.</p>
      <div className="with-button">
        <input readOnly aria-label={title} className="code" value={secret} onFocus={(event) => event.target.select()} />
        <Copy text={secret} />
      </div>
      <div className="form-actions">
        <Button kind="primary" onClick={onClose}>
          I have copied it
        </Button>
      </div>
    </Dialog>
  );
}

function Tokens({ user }: { user: string }) {
  const [creating, setCreating] = useState(false);
  const [revoking, setRevoking] = useState<PersonalToken>();
  const tokens = useLoad(user, () => call('GET /api/v1/users/{user}/tokens', { path: { user } }));
  const revoke = useAction(async (token: PersonalToken) => {
    await call('DELETE /api/v1/users/{user}/tokens/{token}', { path: { user, token: token.id } });
    setRevoking(undefined);
    tokens.reload();
  });
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
              <Table columns={['Name', 'Created', 'Last used', 'Expires', { name: 'Actions', look: 'hidden' }]}>
                {data.map((token) => (
                  <tr key={token.id} className={token.revoked_at === undefined ? '' : 'over'}>
                    <td className="main">{token.name ?? <code>{token.id}</code>}</td>
                    <td>
                      <Time at={token.created_at} />
                    </td>
                    <td className="wide-only">
                      <Time at={token.last_used_at} />
                    </td>
                    <td className="faint">{token.expires_at?.slice(0, 10) ?? 'never'}</td>
                    <td className="row-actions">
                      {token.revoked_at === undefined ? (
                        <Button
                          kind="quiet"
                          aria-label={`Revoke ${token.name ?? token.id}`}
                          onClick={() => setRevoking(token)}
                        >
                          Revoke
                        </Button>
                      ) : (
                        <State value="revoked" />
                      )}
                    </td>
                  </tr>
                ))}
              </Table>
              <Button onClick={() => setCreating(true)}>New token</Button>
            </>
          )
        }
      </Shown>
      {creating ? (
        <NewToken
          user={user}
          onClose={() => {
            setCreating(false);
            tokens.reload();
          }}
        />
      ) : null}
      {revoking ? (
        <Confirm
          title={`Revoke ${revoking.name ?? 'this token'}?`}
          action="Revoke the token"
          busy={revoke.busy}
          error={revoke.error}
          onConfirm={() => revoke.run(revoking)}
          onClose={() => setRevoking(undefined)}
        >
          Whatever still uses it is refused from now on.
        </Confirm>
      ) : null}
    </>
  );
}

function NewToken({ user, onClose }: { user: string; onClose: () => void }) {
  const [name, setName] = useState('');
  const [days, setDays] = useState('30');
  const [made, setMade] = useState<string>();
  const create = useAction(async () => {
    const body = { type: 'personal' as const, expires_in_days: Number(days), ...(name === '' ? {} : { name }) };
    setMade((await call('POST /api/v1/users/{user}/tokens', { path: { user }, body })).token);
  });
  if (made !== undefined) return <ShownOnce title="The new token" secret={made} onClose={onClose} />;
  return (
    <Dialog title="New personal token" onClose={onClose}>
      <Form
        submit="Create the token"
        busy={create.busy}
        error={create.error}
        onSubmit={() => create.run()}
        onCancel={onClose}
      >
        <Field label="Name">
          {(id) => <input id={id} value={name} onChange={(event) => setName(event.target.value)} />}
        </Field>
        <Field label="Expires after, in days" error={fieldError(create.error, 'expires_in_days')}>
          {(id, described) => (
            <input
              id={id}
              {...described}
              type="number"
              min={1}
              max={3650}
              required
              value={days}
              onChange={(event) => setDays(event.target.value)}
            />
          )}
        </Field>
      </Form>
    </Dialog>
  );
}
