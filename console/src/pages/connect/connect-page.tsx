import { useEffect, useState } from 'react';
import { ApiError, call, connection, type Result } from '../../api/client.ts';
import type { ConsoleSession } from '../../api/generated.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorNotice } from '../../ui/notice.tsx';
import { useAction, useApi } from '../../ui/query.ts';
import { Shown } from '../../ui/shown.tsx';
import { useTheme } from '../../ui/theme.ts';
import { type Rights, rightsOf, Scopes, scopesOf } from '../keys/scopes.tsx';
import { SignIn } from '../sign-in/sign-in-page.tsx';
import { keepConnectAddress } from './address.ts';
import './connect.css';

const request = new URLSearchParams(location.search).get('request') ?? '';

/** Where a user allows an assistant to use the MCP endpoint for them. Signs them in first. */
export function ConnectPage() {
  useTheme();
  const [session, setSession] = useState<ConsoleSession | null>();
  const [failure, setFailure] = useState<ApiError>();
  const open = (opened: ConsoleSession | null) => {
    connection.csrf = opened?.csrf_token;
    setSession(opened);
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: reads the session once
  useEffect(() => {
    call('GET /console/session').then(open, (error: unknown) => {
      if (error instanceof ApiError && error.status !== 401) setFailure(error);
      else open(null);
    });
    connection.onSignedOut = () => open(null);
  }, []);
  if (failure !== undefined)
    return (
      <main className="centered">
        <ErrorNotice error={failure} onRetry={() => location.reload()} />
      </main>
    );
  if (session === undefined) return null;
  if (session?.user == null) {
    keepConnectAddress();
    const notice =
      session === null ? 'An assistant wants to connect. ' : 'Only users of an app can connect assistants. ';
    return <SignIn onSignedIn={open} notice={`${notice}Sign in as a user of the app.`} />;
  }
  const signOut = () => void call('DELETE /console/session').then(() => open(null));
  const user = session.user.email ?? session.user.name ?? session.user.id;
  return <Consent user={user} app={session.app?.name ?? 'this app'} onSignOut={signOut} />;
}

function Consent({ user, app, onSignOut }: { user: string; app: string; onSignOut: () => void }) {
  const asked = useApi('GET /api/v1/assistant_request', { query: { request } });
  return (
    <main className="sign-in connect">
      <div className="brand large">
        <img src="/console/icon.svg" alt="" width="40" height="40" />
        Quarry
      </div>
      <Shown loaded={asked}>{(found) => <Decision asked={found} user={user} app={app} />}</Shown>
      <div className="connect-account faint">
        <span className="cut">Signed in as {user}.</span>
        <Button kind="quiet" onClick={onSignOut}>
          Use another account
        </Button>
      </div>
    </main>
  );
}

function Decision({ asked, user, app }: { asked: Result<'GET /api/v1/assistant_request'>; user: string; app: string }) {
  const most = rightsOf(asked.scopes);
  const [rights, setRights] = useState<Rights>(most);
  const decide = useAction(async (decision: 'allow' | 'refuse') => {
    const scopes = decision === 'allow' ? { scopes: scopesOf(rights) } : {};
    const decided = await call('POST /api/v1/assistant_request', { body: { request, decision, ...scopes } });
    location.assign(decided.redirect_url);
  });
  const { name, url, is_verified, is_local, redirect_host } = asked;
  return (
    <section className="card" aria-label="Connect an assistant">
      <h1>Connect {name}?</h1>
      <p>
        It will act as <strong>{user}</strong> in <strong>{app}</strong> until you disconnect it under Keys and tokens.
      </p>
      <p className={is_verified ? 'faint' : 'notice warning'}>
        {is_verified && url !== undefined ? (
          <>
            Its details come from <strong>{new URL(url).host}</strong>.
          </>
        ) : (
          'It chose its name itself. Connect it only if you have just started this in a program that you trust.'
        )}
      </p>
      <Scopes rights={rights} most={most} legend="What it may do" error={undefined} onChange={setRights} />
      <p className="faint">
        Your browser then returns to <strong>{redirect_host}</strong>
        {is_local ? ', a program on this computer.' : '.'}
      </p>
      <ErrorNotice error={decide.error} />
      <div className="form-actions">
        <Button onClick={() => decide.run('refuse')} busy={decide.busy}>
          Refuse
        </Button>
        <Button
          kind="primary"
          onClick={() => decide.run('allow')}
          busy={decide.busy}
          disabled={scopesOf(rights).length === 0}
        >
          Connect
        </Button>
      </div>
    </section>
  );
}
