import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { Account } from './account.tsx';
import { Menu as MenuIcon, Search, X } from './ui/icons.ts';
import './frame.css';
import { Pages } from './pages.tsx';
import { FirstApp, PlacePicker } from './place-picker.tsx';
import { type Section, sectionGroups, visibleSections } from './sections.ts';
import { useSession } from './session.tsx';
import { Boundary } from './ui/boundary.tsx';
import { Button } from './ui/button.tsx';
import { useShownTitle } from './ui/title.ts';
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu shows where the page is
  useEffect(() => {
    document.querySelector('nav [aria-current=page]')?.scrollIntoView({ block: 'nearest' });
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
  const title = useShownTitle();
  useEffect(() => {
    document.title = [title, section?.name].find((name) => name !== undefined) ?? 'Quarry';
    if (section) document.title += ' – Quarry console';
  }, [section, title]);

  return (
    <div className={menuOpen ? 'frame menu-open' : 'frame'}>
      <a className="skip" href="#content">
        Skip to content
      </a>
      <aside id="side" className="side">
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
                  <Icon size={16} strokeWidth={1.75} aria-hidden="true" />
                  {page}
                </Link>
              ))}
            </div>
          ))}
        </nav>
        <Account />
      </aside>
      <header className="bar">
        <Button
          kind="quiet"
          className="menu-button"
          aria-expanded={menuOpen}
          aria-controls="side"
          onClick={() => setMenuOpen(!menuOpen)}
        >
          {menuOpen ? <X size={18} aria-hidden="true" /> : <MenuIcon size={18} aria-hidden="true" />}
          <span className="hidden">{menuOpen ? 'Close' : 'Menu'}</span>
        </Button>
        <Crumbs section={section} title={location === section?.path ? undefined : title} />
      </header>
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

/** Where the page is: the app, the section, and the resource that the page shows. */
function Crumbs({ section, title }: { section: Section | undefined; title: string | undefined }) {
  const { session, place, apps, sandboxes } = useSession();
  const app = session.app?.name ?? apps.find(({ id }) => id === place.app)?.name;
  const sandbox = sandboxes.find(({ id }) => id === place.sandbox)?.name;
  return (
    <nav className="crumbs" aria-label="Breadcrumbs">
      <ol>
        <li>
          <Link href="/" className="brand">
            <img src="/console/icon.svg" alt="Quarry" width="20" height="20" />
          </Link>
        </li>
        {app === undefined ? null : (
          <li className="crumb-place">
            <span className="cut">{app}</span>
            {place.sandbox === undefined ? null : <span className="badge warn">{sandbox ?? 'Sandbox'}</span>}
          </li>
        )}
        {section === undefined ? null : (
          <li>
            {title === undefined ? (
              <span aria-current="page">{section.name}</span>
            ) : (
              <Link href={section.path}>{section.name}</Link>
            )}
          </li>
        )}
        {title === undefined ? null : (
          <li className="crumb-last">
            <span className="cut" aria-current="page" title={title}>
              {title}
            </span>
          </li>
        )}
      </ol>
    </nav>
  );
}
