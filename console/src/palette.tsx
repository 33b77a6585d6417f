import * as RadixDialog from '@radix-ui/react-dialog';
import { Command, defaultFilter } from 'cmdk';
import { type ReactNode, useState } from 'react';
import { useLocation } from 'wouter';
import { call } from './api/client.ts';
import { sourceName } from './pages/knowledge/source-name.ts';
import { findPrincipals } from './principals/principals.ts';
import './palette.css';
import './ui/picker.css';
import './ui/dialog.css';
import { visibleSections } from './sections.ts';
import { useSession } from './session.tsx';
import { usePainted } from './ui/paint.ts';
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

/** The ⌘K palette: finds pages, actions, apps, and resources by name or id. The field is painted before the choices. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const painted = usePainted();
  return (
    <RadixDialog.Root open onOpenChange={(open) => open || onClose()}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className="dialog-overlay" />
        <RadixDialog.Content className="palette" aria-describedby={undefined}>
          <RadixDialog.Title className="hidden">Go to</RadixDialog.Title>
          {/* Its own filter moves every choice in the document on each key. */}
          <Command label="Go to" loop shouldFilter={false}>
            <Command.Input placeholder="A page, an action, or a name or id" value={text} onValueChange={setText} />
            <Command.List label="Choices">
              {painted ? <Choices text={text.trim()} onClose={onClose} /> : <div className="palette-choices" />}
            </Command.List>
          </Command>
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  );
}

type Choice = { key: string; value: string; label: ReactNode; perform: () => void };
type Group = { heading: string; choices: Choice[] };

/** The choices that fit the text, best first. */
function Choices({ text, onClose }: { text: string; onClose: () => void }) {
  const { isDeveloper, apps, place, choose } = useSession();
  const [, navigate] = useLocation();
  const search = useDelayed(text);
  const found = useLoad(['palette', search, isDeveloper], () => findThings(search, isDeveloper), {
    enabled: search.length > 1,
    keep: true,
  });
  const idPage = /^[a-z]{3}_\w{22}$/.test(text) ? idPages[text.slice(0, 3)] : undefined;
  const open = (path: string) => () => navigate(path);
  const groups: Group[] = [
    {
      heading: 'Found',
      choices: (search.length > 1 ? (found.data ?? []) : []).map(({ path, name, kind }) => ({
        ...{ key: path, value: `${name} ${path}`, perform: open(path) },
        label: (
          <>
            <span className="cut">{name}</span> <span className="faint">{kind}</span>
          </>
        ),
      })),
    },
    {
      heading: 'Pages',
      choices: visibleSections(isDeveloper)
        .flatMap((group) => group.sections)
        .map(({ path, name, icon: Icon }) => ({
          ...{ key: path, value: name, perform: open(path) },
          label: (
            <span className="palette-page">
              <Icon size={16} aria-hidden="true" /> {name}
            </span>
          ),
        })),
    },
    {
      heading: 'Actions',
      choices: actions
        .filter(({ forDevelopers }) => isDeveloper || !forDevelopers)
        .map(({ path, name }) => ({ key: name, value: name, label: name, perform: open(path) })),
    },
    {
      heading: 'Apps',
      choices: apps
        .filter(({ id }) => isDeveloper && id !== place.app)
        .map(({ id, name }) => ({
          ...{ key: id, value: `${name} ${id}`, label: `Switch to ${name}`, perform: () => choose({ app: id }) },
        })),
    },
  ];
  const shown = rank(groups, text);
  return (
    <>
      {shown.length === 0 && idPage === undefined ? <Command.Empty>No results.</Command.Empty> : null}
      {idPage === undefined ? null : (
        <Command.Item
          value={text}
          onSelect={() => {
            onClose();
            navigate(`${idPage}/${text}`);
          }}
        >
          Open <code>{text}</code>
        </Command.Item>
      )}
      {shown.map(({ heading, choices }) => (
        <Command.Group key={heading} heading={heading}>
          {choices.map(({ key, label, perform }) => (
            <Command.Item
              key={key}
              value={`${heading} ${key}`}
              onSelect={() => {
                onClose();
                perform();
              }}
            >
              {label}
            </Command.Item>
          ))}
        </Command.Group>
      ))}
    </>
  );
}

/** The choices that fit the text; those that fit best, and their groups, come first. */
function rank(groups: Group[], text: string): Group[] {
  const scored = groups.map(({ heading, choices }) => {
    const fitting = choices
      .map((choice) => ({ choice, score: text === '' ? 1 : defaultFilter(choice.value, text) }))
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score);
    return { heading, choices: fitting.map(({ choice }) => choice), best: fitting[0]?.score ?? 0 };
  });
  return scored.filter(({ choices }) => choices.length > 0).sort((a, b) => b.best - a.best);
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
