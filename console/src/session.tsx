import * as RadixDialog from '@radix-ui/react-dialog';
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from 'react';
import { Router } from 'wouter';
import { navigate, useBrowserLocation } from 'wouter/use-browser-location';
import { ApiError, call, connection } from './api/client.ts';
import type { App, ConsoleSession, Org, Sandbox } from './api/generated.ts';
import { baseOf, listOf, type Place, readPlace, root } from './place.ts';
import { queries, refresh, useLoad } from './ui/query.ts';
import { hasUnsaved, leave } from './ui/unsaved.ts';

type SessionState = {
  session: ConsoleSession;
  isDeveloper: boolean;
  place: Place;
  apps: App[];
  sandboxes: Sandbox[];
  orgs: Org[];
  choose(place: Place): void;
  addApp(name: string): Promise<void>;
  signOut(): void;
};

const Context = createContext<SessionState | undefined>(undefined);

/** The session and its place. Requires SessionProvider. */
export function useSession(): SessionState {
  const state = useContext(Context);
  if (!state) throw new Error('useSession needs a SessionProvider.');
  return state;
}

/** Shows `signIn` until a user has signed in, then `children`. */
export function SessionProvider({
  signIn,
  children,
}: {
  signIn: (onSignedIn: (session: ConsoleSession) => void, notice: string | undefined) => ReactNode;
  children: ReactNode;
}) {
  const [session, setSession] = useState<ConsoleSession | null | undefined>(undefined);
  const [notice, setNotice] = useState<string>();
  const [failure, setFailure] = useState<ApiError>();

  const [isAsking, setAsking] = useState(false);

  const open = useCallback((opened: ConsoleSession | null) => {
    connection.csrf = opened?.csrf_token;
    queries.clear();
    setSession(opened);
    setAsking(false);
    if (opened) setNotice(undefined);
  }, []);

  useEffect(() => {
    connection.onSignedOut = () => {
      setNotice('Your session has ended. Sign in again to continue.');
      // The page with unsaved text stays below the sign-in.
      if (!hasUnsaved()) return open(null);
      connection.csrf = undefined;
      setAsking(true);
    };
    const code = takeSignInCode();
    const session = code === undefined ? call('GET /console/session') : signInByLink(code);
    session.then(open, (error: unknown) => {
      if (!(error instanceof ApiError)) return;
      if (error.status !== 401) return setFailure(error);
      if (code !== undefined) setNotice(error.message);
      open(null);
    });
    // A link that is pasted into an open tab loads nothing.
    const takeLink = () => {
      if (location.hash.startsWith(codeMark)) leave(() => location.reload());
    };
    window.addEventListener('hashchange', takeLink);
    return () => window.removeEventListener('hashchange', takeLink);
  }, [open]);

  if (failure)
    return (
      <main className="centered">
        <h1>The console cannot start</h1>
        <p>{failure.message}</p>
        <button type="button" className="button primary" onClick={() => location.reload()}>
          Try again
        </button>
      </main>
    );
  if (session === undefined) return null;
  if (session === null) return <>{signIn(open, notice)}</>;
  return (
    <>
      <PlaceProvider key={principalOf(session)} session={session} onSignedOut={() => open(null)}>
        {children}
      </PlaceProvider>
      {isAsking ? (
        <SignInAgain>
          {signIn((opened) => {
            if (principalOf(opened) !== principalOf(session)) return open(opened);
            connection.csrf = opened.csrf_token;
            setSession(opened);
            setAsking(false);
            void queries.invalidateQueries();
          }, notice)}
        </SignInAgain>
      ) : null}
    </>
  );
}

const principalOf = ({ user, developer }: ConsoleSession) => user?.id ?? developer?.id;

/** Covers the page and its dialogs, which keep unsaved text. */
function SignInAgain({ children }: { children: ReactNode }) {
  return (
    <RadixDialog.Root open>
      <RadixDialog.Portal>
        <RadixDialog.Content
          className="sign-in-again"
          aria-describedby={undefined}
          onEscapeKeyDown={(event) => event.preventDefault()}
        >
          <RadixDialog.Title className="hidden">Sign in again</RadixDialog.Title>
          {children}
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  );
}

const codeMark = '#sign-in=';
/** In development, React mounts twice, but a link works only once. */
let signingIn: Promise<ConsoleSession> | undefined;

/** Takes the code of a sign-in link out of the address. */
function takeSignInCode(): string | undefined {
  if (signingIn !== undefined) return '';
  if (!location.hash.startsWith(codeMark)) return undefined;
  const code = location.hash.slice(codeMark.length);
  history.replaceState(null, '', location.pathname + location.search);
  return code;
}

/** A person who is already signed in stays signed in if the link was already used. */
function signInByLink(code: string): Promise<ConsoleSession> {
  signingIn ??= call('POST /console/session', { body: { sign_in_code: code } }).catch(async (error: unknown) => {
    return call('GET /console/session').catch(() => {
      throw error;
    });
  });
  return signingIn;
}

const firstPage = { page_size: 100 };

function PlaceProvider({
  session,
  onSignedOut,
  children,
}: {
  session: ConsoleSession;
  onSignedOut: () => void;
  children: ReactNode;
}) {
  const isDeveloper = session.kind === 'developer';
  const [pathname] = useBrowserLocation();
  const { place: named, page } = readPlace(pathname);
  const apps = useLoad(
    ['GET /protected/api/v1/developer/apps', 'all'],
    async () => (await call('GET /protected/api/v1/developer/apps', { query: firstPage })).data,
    // Kept while the place changes. Without apps, the pages would be mounted again.
    { enabled: isDeveloper, keep: true },
  );
  const known = apps.data;
  const listed = named.app === undefined || known?.some(({ id }) => id === named.app);
  // Only the first hundred are listed.
  const unlisted = useLoad(
    ['GET /protected/api/v1/developer/apps/{app}', named.app],
    () => call('GET /protected/api/v1/developer/apps/{app}', { path: { app: named.app ?? '' } }),
    { enabled: isDeveloper && known !== undefined && !listed },
  );
  const place: Place = isDeveloper ? named : { org: session.user?.org };
  const base = isDeveloper ? baseOf(place) : root;

  // Set before any child sends a request.
  connection.app = isDeveloper ? place.app : undefined;
  connection.sandbox = isDeveloper ? place.sandbox : undefined;

  useEffect(() => {
    if (!isDeveloper || known === undefined || named.app !== undefined) return;
    const last = lastPlace();
    const home = known.some(({ id }) => id === last.app) ? last : { app: known[0]?.id };
    if (home.app !== undefined) navigate(`${baseOf(home)}${page}${location.search}`, { replace: true });
  }, [isDeveloper, known, named.app, page]);

  const { app, sandbox, org } = place;
  useEffect(() => {
    if (isDeveloper && app !== undefined) localStorage.setItem(placeKey, JSON.stringify({ app, sandbox, org }));
  }, [isDeveloper, app, sandbox, org]);

  const inApp = isDeveloper && app !== undefined && (listed === true || unlisted.data !== undefined);
  const sandboxes = useLoad(
    ['GET /protected/api/v1/developer/apps/{app}/sandboxes', 'all', app],
    async () => {
      const path = { app: app ?? '' };
      const query = firstPage;
      return (await call('GET /protected/api/v1/developer/apps/{app}/sandboxes', { path, query })).data;
    },
    { enabled: inApp },
  );
  const orgs = useLoad(
    ['GET /api/v1/orgs', 'all'],
    async () => (await call('GET /api/v1/orgs', { query: firstPage })).data,
    { enabled: inApp || !isDeveloper },
  );

  const choose = useCallback((next: Place) => {
    const now = readPlace(location.pathname);
    // In a different org, stays on the same page. In a different app or sandbox, opens the page's list.
    const same = next.app === now.place.app && next.sandbox === now.place.sandbox;
    leave(() => navigate(`${baseOf(next)}${same ? now.page : listOf(now.page)}`));
  }, []);

  const state = useMemo<SessionState>(
    () => ({
      ...{ session, isDeveloper, place: { app, sandbox, org }, choose },
      apps: session.app ? [session.app] : (known ?? []),
      sandboxes: sandboxes.data ?? [],
      orgs: orgs.data ?? [],
      async addApp(name) {
        const created = await call('POST /protected/api/v1/developer/apps', { body: { name } });
        refresh('GET /protected/api/v1/developer/apps');
        navigate(`${baseOf({ app: created.id })}/`);
      },
      signOut() {
        leave(
          () =>
            void call('DELETE /console/session')
              .catch(() => undefined)
              .then(onSignedOut),
        );
      },
    }),
    [session, isDeveloper, app, sandbox, org, known, sandboxes.data, orgs.data, choose, onSignedOut],
  );
  // A developer's page needs its app in the address. If the address has none, it shows the first app.
  const ready = !isDeveloper || (known !== undefined && !unlisted.loading && (app !== undefined || known.length === 0));
  if (unlisted.error && known !== undefined) return <UnknownApp apps={known} error={unlisted.error} />;
  return ready ? (
    <Router base={base}>
      <Context value={state}>{children}</Context>
    </Router>
  ) : null;
}

/** The address names an app that does not exist, or that the developer may not see. */
function UnknownApp({ apps, error }: { apps: App[]; error: ApiError }) {
  return (
    <main className="centered">
      <h1>{error.status === 404 ? 'There is no such app' : 'The app cannot be opened'}</h1>
      <p>{error.status === 404 ? 'It was deleted, or it belongs to another developer.' : error.message}</p>
      {apps.length === 0 ? <a href={root}>Go to the start page</a> : <p>Your apps:</p>}
      <ul>
        {apps.map(({ id, name }) => (
          <li key={id}>
            <a href={baseOf({ app: id })}>{name}</a>
          </li>
        ))}
      </ul>
    </main>
  );
}

const placeKey = 'quarry.place';

function lastPlace(): Place {
  try {
    return JSON.parse(localStorage.getItem(placeKey) ?? '{}') as Place;
  } catch {
    return {};
  }
}
