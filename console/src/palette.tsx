import * as RadixDialog from '@radix-ui/react-dialog';
import { Command } from 'cmdk';
import { useState } from 'react';
import { useLocation } from 'wouter';
import { call } from './api/client.ts';
import { sourceName } from './pages/knowledge/source-name.ts';
import { findPrincipals } from './principals/principals.ts';
import './palette.css';
import './ui/picker.css';
import './ui/dialog.css';
import { visibleSections } from './sections.ts';
import { useSession } from './session.tsx';
import { useLoad } from './ui/query.ts';
import { useDelayed } from './ui/use-delayed.ts';

type Found = { path: string; name: string; kind: string };
const idPages: Record<string, string> = {
  ...{ atr: '/runs', aut: '/automations', fil: '/files', ext: '/extractions', cso: '/knowledge' },
  ...{ cdo: '/knowledge/documents', usr: '/users', org: '/orgs', tem: '/teams', agt: '/agents', thr: '/threads' },
  whk: '/webhooks',
};
const actions: (Found & { forDevelopers?: boolean })[] = [
  { path: '/automations/new', name: 'New automation', kind: 'action', forDevelopers: true },
  { path: '/files', name: 'Upload a file', kind: 'action' },
  { path: '/extractions', name: 'Extract a document or a page', kind: 'action' },
  { path: '/keys', name: 'Create a key or a token', kind: 'action' },
];

/** The ⌘K palette: finds pages, actions, apps, and resources by name or id. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const { isDeveloper, apps, place, choose } = useSession();
  const [, navigate] = useLocation();
  const [text, setText] = useState('');
  const search = useDelayed(text.trim());
  const found = useLoad(['palette', search, isDeveloper], () => findThings(search, isDeveloper), {
    enabled: search.length > 1,
    keep: true,
  });
  const go = (perform: () => void) => {
    onClose();
    perform();
  };
  const pages = visibleSections(isDeveloper).flatMap((group) => group.sections);
  const idPage = /^[a-z]{3}_\w{22}$/.test(search) ? idPages[search.slice(0, 3)] : undefined;
  return (
    <RadixDialog.Root open onOpenChange={(open) => open || onClose()}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className="dialog-overlay" />
        <RadixDialog.Content className="palette" aria-describedby={undefined}>
          <RadixDialog.Title className="hidden">Go to</RadixDialog.Title>
          <Command label="Go to" loop>
            <Command.Input placeholder="A page, an action, or a name or id" value={text} onValueChange={setText} />
            <Command.List label="Choices">
              <Command.Empty>No results.</Command.Empty>
              {idPage === undefined ? null : (
                <Command.Item value={search} onSelect={() => go(() => navigate(`${idPage}/${search}`))}>
                  Open <code>{search}</code>
                </Command.Item>
              )}
              {search.length > 1 && found.data && found.data.length > 0 ? (
                <Command.Group heading="Found">
                  {found.data.map(({ path, name, kind }) => (
                    <Command.Item key={path} value={`${name} ${path}`} onSelect={() => go(() => navigate(path))}>
                      <span className="cut">{name}</span> <span className="faint">{kind}</span>
                    </Command.Item>
                  ))}
                </Command.Group>
              ) : null}
              <Command.Group heading="Pages">
                {pages.map(({ path, name, icon: Icon }) => (
                  <Command.Item key={path} value={name} onSelect={() => go(() => navigate(path))}>
                    <span className="palette-page">
                      <Icon size={16} aria-hidden="true" /> {name}
                    </span>
                  </Command.Item>
                ))}
              </Command.Group>
              <Command.Group heading="Actions">
                {actions
                  .filter(({ forDevelopers }) => isDeveloper || !forDevelopers)
                  .map(({ path, name }) => (
                    <Command.Item key={name} value={name} onSelect={() => go(() => navigate(path))}>
                      {name}
                    </Command.Item>
                  ))}
              </Command.Group>
              {isDeveloper && apps.length > 1 ? (
                <Command.Group heading="Apps">
                  {apps
                    .filter(({ id }) => id !== place.app)
                    .map(({ id, name }) => (
                      <Command.Item key={id} value={`${name} ${id}`} onSelect={() => go(() => choose({ app: id }))}>
                        Switch to {name}
                      </Command.Item>
                    ))}
                </Command.Group>
              ) : null}
            </Command.List>
          </Command>
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  );
}

/** Finds resources whose name contains the text: files, sources, automations that the caller may open, and people. */
async function findThings(search: string, isDeveloper: boolean): Promise<Found[]> {
  const query = { search, page_size: 5 };
  const [files, sources, automations, people] = await Promise.all([
    call('GET /api/v1/files', { query }),
    call('GET /api/v1/knowledge_sources', { query: { name: search, page_size: 5 } }),
    isDeveloper ? call('GET /api/v1/automations', { query }) : { data: [] },
    findPrincipals(isDeveloper ? ['user', 'agent', 'team', 'org'] : ['agent', 'team'], search),
  ]);
  return [
    ...files.data.map(({ id, filename }) => ({ path: `/files/${id}`, name: filename, kind: 'file' })),
    ...sources.data.map((source) => ({
      ...{ path: `/knowledge/${source.id}`, kind: 'source', name: sourceName(source) },
    })),
    ...automations.data.map(({ id, name }) => ({ path: `/automations/${id}`, name, kind: 'automation' })),
    ...people.slice(0, 8).map(({ id, name, kind }) => ({ path: `${idPages[id.slice(0, 3)]}/${id}`, name, kind })),
  ];
}
