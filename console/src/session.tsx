import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from 'react';
import { ApiError, call, connection } from './api/client.ts';
import type { App, ConsoleSession, Org, Sandbox } from './api/generated.ts';

/** The place that the console shows: an app, production or a sandbox, and one org or all. */
type Place = { app?: string | undefined; sandbox?: string | undefined; org?: string | undefined };

type SessionState = {
  session: ConsoleSession;
  isDeveloper: boolean;
  place: Place;
  apps: App[];
  sandboxes: Sandbox[];
  orgs: Org[];
  choose(place: Place): void;
  addApp(name: string): Promise<void>;
  addOrg(name: string): Promise<Org>;
  signOut(): Promise<void>;
};

const Context = createContext<SessionState | undefined>(undefined);

/** The session and its place. Requires SessionProvider. */
export function useSession(): SessionState {
  const state = useContext(Context);
  if (!state) throw new Error('There is no session here.');
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

  const open = useCallback((opened: ConsoleSession | null) => {
    connection.csrf = opened?.csrf_token;
    setSession(opened);
    if (opened) setNotice(undefined);
  }, []);

  useEffect(() => {
    connection.onSignedOut = () => {
      setNotice('Your session has ended. Sign in again to continue.');
      open(null);
    };
    call('GET /console/session').then(open, (error: unknown) => {
      if (error instanceof ApiError && error.status === 401) open(null);
      else if (error instanceof ApiError) setFailure(error);
    });
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
    <PlaceProvider key={session.user?.id ?? session.developer?.id} session={session} onSignedOut={() => open(null)}>
      {children}
    </PlaceProvider>
  );
}

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
  const [apps, setApps] = useState<App[]>(session.app ? [session.app] : []);
  const [sandboxes, setSandboxes] = useState<Sandbox[]>([]);
  const [orgs, setOrgs] = useState<Org[]>([]);
  const [place, setPlace] = useState<Place>(isDeveloper ? remembered() : { org: session.user?.org });
  const [ready, setReady] = useState(!isDeveloper);

  // Before any child sends a request.
  connection.app = isDeveloper ? place.app : undefined;
  connection.sandbox = isDeveloper ? place.sandbox : undefined;

  const choose = useCallback((next: Place) => {
    localStorage.setItem(placeKey, JSON.stringify(next));
    setPlace(next);
  }, []);

  const loadApps = useCallback(async () => {
    const { data } = await call('GET /protected/api/v1/developer/apps', { query: { page_size: 100 } });
    setApps(data);
    return data;
  }, []);

  useEffect(() => {
    if (!isDeveloper) return;
    loadApps().then(
      (found) => {
        setPlace((now) => (found.some((app) => app.id === now.app) ? now : { app: found[0]?.id }));
        setReady(true);
      },
      () => setReady(true),
    );
  }, [isDeveloper, loadApps]);

  useEffect(() => {
    if (!isDeveloper || place.app === undefined || !ready) return;
    setSandboxes([]);
    const query = { page_size: 100 };
    call('GET /protected/api/v1/developer/apps/{app}/sandboxes', { path: { app: place.app }, query }).then(
      ({ data }) => setSandboxes(data),
      () => setSandboxes([]),
    );
  }, [isDeveloper, place.app, ready]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: orgs are those of the place, which goes along in headers
  useEffect(() => {
    if (!ready || (isDeveloper && place.app === undefined)) return;
    setOrgs([]);
    call('GET /api/v1/orgs', { query: { page_size: 100 } }).then(
      ({ data }) => setOrgs(data),
      () => setOrgs([]),
    );
  }, [isDeveloper, place.app, place.sandbox, ready]);

  const state = useMemo<SessionState>(
    () => ({
      ...{ session, isDeveloper, place, apps, sandboxes, orgs, choose },
      async addApp(name) {
        const app = await call('POST /protected/api/v1/developer/apps', { body: { name } });
        await loadApps();
        choose({ app: app.id });
      },
      async addOrg(name) {
        const org = await call('POST /api/v1/orgs', { body: { name } });
        setOrgs((now) => [org, ...now]);
        return org;
      },
      async signOut() {
        await call('DELETE /console/session').catch(() => undefined);
        onSignedOut();
      },
    }),
    [session, isDeveloper, place, apps, sandboxes, orgs, choose, loadApps, onSignedOut],
  );
  return ready ? <Context value={state}>{children}</Context> : null;
}

const placeKey = 'quarry.place';

function remembered(): Place {
  try {
    return JSON.parse(localStorage.getItem(placeKey) ?? '{}') as Place;
  } catch {
    return {};
  }
}
