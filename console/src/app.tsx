import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { Menu as MenuIcon, Search, X } from './ui/icons.ts';
import './frame.css';
import { Pages } from './pages.tsx';
import { FirstApp, PlacePicker } from './place-picker.tsx';
import { sectionGroups, visibleSections } from './sections.ts';
import { useSession } from './session.tsx';
import { Boundary } from './ui/boundary.tsx';
import { Button } from './ui/button.tsx';
import { Field } from './ui/field.tsx';
import { type Theme, useTheme } from './ui/theme.ts';
import { UploadsTray } from './uploads-tray.tsx';

const Palette = lazy(() => import('./palette.tsx'));

/** Everything behind the sign-in: the layout and the current page. */
export function App() {
  const { place, isDeveloper } = useSession();
  const [location] = useLocation();
  const [menuOpen, setMenuOpen] = useState(false);
  const [paletteOpen, setPaletteOpen] = useState(false);
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
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      setPaletteOpen((now) => !now);
    };
    // A file dropped beside a drop zone must not make the browser leave the page.
    const ignore = (event: DragEvent) => event.preventDefault();
    window.addEventListener('keydown', listen);
    window.addEventListener('dragover', ignore);
    window.addEventListener('drop', ignore);
    return () => {
      window.removeEventListener('keydown', listen);
      window.removeEventListener('dragover', ignore);
      window.removeEventListener('drop', ignore);
    };
  }, []);
  const section = sectionGroups.flatMap((group) => group.sections).find(({ path }) => location.startsWith(path));
  useEffect(() => {
    document.title = section ? `${section.name} – Quarry console` : 'Quarry console';
  }, [section]);

  return (
    <div className="frame">
      <a className="skip" href="#content">
        Skip to content
      </a>
      <header className="bar">
        <Link href="/" className="brand">
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
          {menuOpen ? <X size={18} aria-hidden="true" /> : <MenuIcon size={18} aria-hidden="true" />}
          {menuOpen ? 'Close' : 'Menu'}
        </Button>
      </header>
      <aside id="side" className={menuOpen ? 'side open' : 'side'}>
        <PlacePicker />
        <button type="button" className="palette-button" onClick={() => setPaletteOpen(true)}>
          <Search size={15} aria-hidden="true" /> Go to… <kbd>Ctrl K</kbd>
        </button>
        <nav aria-label="Sections">
          {visibleSections(isDeveloper).map(({ name, sections }) => (
            <div key={name} className="nav-group">
              {name === '' ? null : <p>{name}</p>}
              {sections.map(({ path, name: page, icon: Icon }) => (
                <Link key={path} href={path} aria-current={section?.path === path ? 'page' : undefined}>
                  <Icon size={18} strokeWidth={1.7} aria-hidden="true" />
                  {page}
                </Link>
              ))}
            </div>
          ))}
        </nav>
        <Account />
      </aside>
      <main id="content" ref={content} tabIndex={-1}>
        <UploadsTray />
        {isDeveloper && place.app === undefined ? <FirstApp /> : <Pages />}
      </main>
      <Boundary>
        <Suspense fallback={null}>{paletteOpen ? <Palette onClose={() => setPaletteOpen(false)} /> : null}</Suspense>
      </Boundary>
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
