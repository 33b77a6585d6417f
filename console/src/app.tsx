import { type ReactNode, useEffect, useRef, useState } from 'react';
import { Link, Redirect, Route, Switch, useLocation } from 'wouter';
import { AutomationPage } from './pages/automations/automation-page.tsx';
import { AutomationsPage } from './pages/automations/automations-page.tsx';
import { RunPage } from './pages/automations/run-page.tsx';
import { ExtractionPage } from './pages/extractions/extraction-page.tsx';
import { ExtractionsPage } from './pages/extractions/extractions-page.tsx';
import { FilePage } from './pages/files/file-page.tsx';
import { FilesPage } from './pages/files/files-page.tsx';
import { JobsPage } from './pages/jobs/jobs-page.tsx';
import { KeysPage } from './pages/keys/keys-page.tsx';
import { DocumentPage } from './pages/knowledge/document-page.tsx';
import { SourcePage } from './pages/knowledge/source-page.tsx';
import { SourcesPage } from './pages/knowledge/sources-page.tsx';
import { KvPage } from './pages/kv/kv-page.tsx';
import { useSession } from './session.tsx';
import { Button, Empty, Field } from './ui/basics.tsx';
import { Dialog, Form } from './ui/dialog.tsx';
import { type Theme, useTheme } from './ui/theme.ts';
import { useAction } from './ui/use-load.ts';

const sections = [
  { path: '/files', name: 'Files', icon: 'M4 3h7l4 4v10H4zM11 3v4h4' },
  { path: '/extractions', name: 'Extractions', icon: 'M4 4h12M4 8h12M4 12h7M14 11v6m-3-3 3 3 3-3' },
  { path: '/knowledge', name: 'Knowledge', icon: 'M4 4c3-1 5 0 6 1 1-1 3-2 6-1v12c-3-1-5 0-6 1-1-1-3-2-6-1zM10 5v12' },
  { path: '/runs', name: 'Automations', icon: 'M5 5h4v4H5zM11 11h4v4h-4zM7 9v4h4' },
  { path: '/kv', name: 'Key-value', icon: 'M4 5h5M4 10h5M4 15h5M12 5h4M12 10h4M12 15h4' },
  { path: '/keys', name: 'Keys and tokens', icon: 'M8 12a4 4 0 1 1 2-2l6 6v-3' },
  { path: '/jobs', name: 'Set-aside jobs', icon: 'M10 3a7 7 0 1 0 7 7M10 6v4l3 2M14 3h3v3', forDevelopers: true },
] as const;

/** Everything behind the sign-in: the layout and the current page. */
export function App() {
  const { place, isDeveloper } = useSession();
  const [location] = useLocation();
  const [menuOpen, setMenuOpen] = useState(false);
  const content = useRef<HTMLElement>(null);
  const shown = useRef(location);
  useEffect(() => {
    if (shown.current === location) return;
    shown.current = location;
    // After navigation, close the menu and move focus, so that a screen reader continues on the new page.
    setMenuOpen(false);
    content.current?.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }, [location]);
  const shownSections = sections.filter((one) => isDeveloper || !('forDevelopers' in one));
  const section = sections.find(({ path }) => location.startsWith(path));
  useEffect(() => {
    document.title = section ? `${section.name} – Quarry console` : 'Quarry console';
  }, [section]);

  return (
    <div className="frame">
      <a className="skip" href="#content">
        Skip to content
      </a>
      <header className="bar">
        <Link href="/files" className="brand">
          <img src="/console/icon.svg" alt="" width="26" height="26" />
          Quarry
        </Link>
        <Button
          kind="quiet"
          className="menu-button"
          aria-expanded={menuOpen}
          aria-controls="side"
          onClick={() => setMenuOpen(!menuOpen)}
        >
          {menuOpen ? 'Close' : 'Menu'}
        </Button>
      </header>
      <aside id="side" className={menuOpen ? 'side open' : 'side'}>
        <PlacePicker />
        <nav aria-label="Sections">
          {shownSections.map(({ path, name, icon }) => (
            <Link key={path} href={path} aria-current={section?.path === path ? 'page' : undefined}>
              <svg viewBox="0 0 20 20" aria-hidden="true">
                <path d={icon} />
              </svg>
              {name}
            </Link>
          ))}
        </nav>
        <Account />
      </aside>
      <main id="content" ref={content} tabIndex={-1}>
        {isDeveloper && place.app === undefined ? <FirstApp /> : <Pages />}
      </main>
    </div>
  );
}

/** A page belongs to a place: it is remounted for another app, sandbox or org. */
function Pages() {
  const { place } = useSession();
  const key = `${place.app}/${place.sandbox}/${place.org}`;
  const at = (render: (id: string) => ReactNode) => (params: { id?: string }) => (
    <div key={key} className="page">
      {render(params.id ?? '')}
    </div>
  );
  return (
    <Switch>
      <Route path="/files">
        {at(() => (
          <FilesPage />
        ))}
      </Route>
      <Route path="/files/:id">
        {at((id) => (
          <FilePage id={id} />
        ))}
      </Route>
      <Route path="/extractions">
        {at(() => (
          <ExtractionsPage />
        ))}
      </Route>
      <Route path="/extractions/:id">
        {at((id) => (
          <ExtractionPage id={id} />
        ))}
      </Route>
      <Route path="/knowledge">
        {at(() => (
          <SourcesPage />
        ))}
      </Route>
      <Route path="/knowledge/documents/:id">
        {at((id) => (
          <DocumentPage id={id} />
        ))}
      </Route>
      <Route path="/knowledge/:id">
        {at((id) => (
          <SourcePage id={id} />
        ))}
      </Route>
      <Route path="/runs">
        {at(() => (
          <AutomationsPage />
        ))}
      </Route>
      <Route path="/runs/automations/:id">
        {at((id) => (
          <AutomationPage id={id} />
        ))}
      </Route>
      <Route path="/runs/:id">
        {at((id) => (
          <RunPage key={id} id={id} />
        ))}
      </Route>
      <Route path="/kv">
        {at(() => (
          <KvPage />
        ))}
      </Route>
      <Route path="/jobs">
        {at(() => (
          <JobsPage />
        ))}
      </Route>
      <Route path="/keys">
        {at(() => (
          <KeysPage />
        ))}
      </Route>
      <Route path="/">
        <Redirect to="/files" />
      </Route>
      <Route>
        <Empty title="Page not found" action={<Link href="/files">Go to the files</Link>}>
          The address may be incomplete.
        </Empty>
      </Route>
    </Switch>
  );
}

function PlacePicker() {
  const { session, isDeveloper, place, apps, sandboxes, orgs, choose } = useSession();
  const [adding, setAdding] = useState(false);
  if (!isDeveloper)
    return (
      <dl className="place">
        <dt>App</dt>
        <dd>{session.app?.name}</dd>
        {session.user?.sandbox === undefined ? null : (
          <>
            <dt>Sandbox</dt>
            <dd>
              <code>{session.user.sandbox}</code>
            </dd>
          </>
        )}
        <dt>Organisation</dt>
        <dd>{session.user?.org_name ?? 'none'}</dd>
      </dl>
    );
  return (
    <div className="place">
      <Field label="App">
        {(id) => (
          <div className="with-button">
            <select id={id} value={place.app ?? ''} onChange={(event) => choose({ app: event.target.value })}>
              {apps.map((app) => (
                <option key={app.id} value={app.id}>
                  {app.name}
                </option>
              ))}
            </select>
            <Button kind="plain" aria-label="New app" title="New app" onClick={() => setAdding(true)}>
              +
            </Button>
          </div>
        )}
      </Field>
      <Field label="Sandbox">
        {(id) => (
          <select
            id={id}
            value={place.sandbox ?? ''}
            onChange={(event) => choose({ app: place.app, sandbox: event.target.value || undefined })}
          >
            <option value="">Production</option>
            {place.sandbox !== undefined && sandboxes.length === 0 ? <option value={place.sandbox}>…</option> : null}
            {sandboxes.map((sandbox) => (
              <option key={sandbox.id} value={sandbox.id}>
                {sandbox.name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Organisation">
        {(id) => (
          <select
            id={id}
            value={place.org ?? ''}
            onChange={(event) => choose({ ...place, org: event.target.value || undefined })}
          >
            <option value="">All, including unassigned</option>
            {place.org !== undefined && orgs.length === 0 ? <option value={place.org}>…</option> : null}
            {orgs.map((org) => (
              <option key={org.id} value={org.id}>
                {org.name}
              </option>
            ))}
          </select>
        )}
      </Field>
      {adding ? <NewApp onClose={() => setAdding(false)} /> : null}
    </div>
  );
}

function NewApp({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="New app" onClose={onClose}>
      <AppForm onDone={onClose} onCancel={onClose} />
    </Dialog>
  );
}

function AppForm({ onDone, onCancel }: { onDone?: () => void; onCancel?: () => void }) {
  const { addApp } = useSession();
  const [name, setName] = useState('');
  const add = useAction(() => addApp(name));
  return (
    <Form
      submit="Create the app"
      busy={add.busy}
      error={add.error}
      onCancel={onCancel}
      onSubmit={async () => {
        if (await add.run()) onDone?.();
      }}
    >
      <Field label="Name" hint="Everything belongs to an app. Nothing is visible from one app to another.">
        {(id, described) => (
          <input id={id} {...described} required value={name} onChange={(event) => setName(event.target.value)} />
        )}
      </Field>
    </Form>
  );
}

function FirstApp() {
  return (
    <div className="page narrow">
      <Empty title="Create your first app">An app is one tenant: its files, sources, automations and users.</Empty>
      <div className="card">
        <AppForm />
      </div>
    </div>
  );
}

function Account() {
  const { session, signOut } = useSession();
  const [theme, setTheme] = useTheme();
  return (
    <div className="account">
      <Field label="Appearance">
        {(id) => (
          <select id={id} value={theme} onChange={(event) => setTheme(event.target.value as Theme)}>
            <option value="auto">System</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </select>
        )}
      </Field>
      <p className="who">
        <span className="faint">{session.kind === 'developer' ? 'Developer' : 'Signed in as'}</span>
        <span className="cut">{session.user?.email ?? session.developer?.name}</span>
      </p>
      <Button kind="plain" onClick={() => signOut()}>
        Sign out
      </Button>
      <a className="faint" href="/docs">
        API reference
      </a>
    </div>
  );
}
