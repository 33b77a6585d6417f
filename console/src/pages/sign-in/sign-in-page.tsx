import { useState } from 'react';
import { call } from '../../api/client.ts';
import type { ConsoleSession } from '../../api/generated.ts';
import { Form } from '../../ui/dialog.tsx';
import { Field, fieldError } from '../../ui/field.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import './sign-in.css';
import '../../frame.css';
import { useAction } from '../../ui/query.ts';
import { useTheme } from '../../ui/theme.ts';
import { IssuerButtons } from './issuers.tsx';

const keyStorage = 'quarry.publishable-key';

/** Sign-in for developers and users. A link with `?key=pk_…` fills in the app's key. */
export function SignIn({
  onSignedIn,
  notice,
}: {
  onSignedIn: (session: ConsoleSession) => void;
  notice: string | undefined;
}) {
  useTheme();
  const linkedKey = new URLSearchParams(location.search).get('key') ?? localStorage.getItem(keyStorage) ?? '';
  const [way, setWay] = useState<'user' | 'developer'>(linkedKey === '' ? 'developer' : 'user');
  const [key, setKey] = useState(linkedKey);
  const [email, setEmail] = useState('');
  const [password, setPassword] = useState('');
  const [token, setToken] = useState('');

  const signIn = useAction(async () => {
    const body =
      way === 'developer' ? { developer_token: token.trim() } : { publishable_key: key.trim(), email, password };
    const session = await call('POST /console/session', { body });
    if (way === 'user') localStorage.setItem(keyStorage, key.trim());
    onSignedIn(session);
  });

  function choose(next: typeof way) {
    signIn.clear();
    setWay(next);
  }

  const form = (
    <Form
      submit="Sign in"
      busy={signIn.busy}
      error={signIn.error}
      shownFields={['developer_token', 'email', 'password', 'publishable_key']}
      onSubmit={() => signIn.run()}
    >
      {way === 'developer' ? (
        <Field
          key="token"
          label="Developer token"
          hint={
            <>
              The first start wrote one to <code>data/credentials.json</code>; <code>npx quarry credentials</code> makes
              another.
            </>
          }
          error={fieldError(signIn.error, 'developer_token')}
        >
          {(id, described) => (
            <input
              id={id}
              {...described}
              type="password"
              autoComplete="off"
              spellCheck={false}
              placeholder="dvt_…"
              required
              value={token}
              onChange={(event) => setToken(event.target.value)}
            />
          )}
        </Field>
      ) : (
        <>
          <Field label="E-mail" error={fieldError(signIn.error, 'email')}>
            {(id, described) => (
              <input
                id={id}
                {...described}
                type="email"
                autoComplete="username"
                required
                value={email}
                onChange={(event) => setEmail(event.target.value)}
              />
            )}
          </Field>
          <Field label="Password" error={fieldError(signIn.error, 'password')}>
            {(id, described) => (
              <input
                id={id}
                {...described}
                type="password"
                autoComplete="current-password"
                required
                value={password}
                onChange={(event) => setPassword(event.target.value)}
              />
            )}
          </Field>
          <Field
            label="Publishable key of the app"
            hint="It identifies your app. The developer of the app can give you a link that contains it."
            error={fieldError(signIn.error, 'publishable_key')}
          >
            {(id, described) => (
              <input
                id={id}
                {...described}
                autoComplete="off"
                spellCheck={false}
                placeholder="pk_…"
                required
                value={key}
                onChange={(event) => setKey(event.target.value)}
              />
            )}
          </Field>
        </>
      )}
    </Form>
  );
  return (
    <main className="sign-in">
      <div className="brand large">
        <img src="/console/icon.svg" alt="" width="40" height="40" />
        Quarry
      </div>
      <div className="card">
        <h1>Sign in</h1>
        {notice === undefined ? null : (
          <p className="notice" role="status">
            {notice}
          </p>
        )}
        <Tabs<'developer' | 'user'>
          label="How to sign in"
          value={way}
          onChange={choose}
          tabs={[
            { id: 'developer', name: 'Developer', panel: way === 'developer' ? form : null },
            {
              id: 'user',
              name: 'User of an app',
              panel:
                way === 'user' ? (
                  <>
                    {form}
                    <IssuerButtons publishableKey={key.trim()} />
                  </>
                ) : null,
            },
          ]}
        />
      </div>
      <p className="faint">
        <a href="/docs">API reference</a>
      </p>
    </main>
  );
}
