import {
  Activity,
  AppWindow,
  Bot,
  Boxes,
  Building2,
  Download,
  Eraser,
  FileSearch,
  Files,
  FileText,
  Fingerprint,
  Gauge,
  History,
  Inbox,
  KeyRound,
  LayoutDashboard,
  Library,
  ListTree,
  Lock,
  type LucideIcon,
  MessagesSquare,
  Sparkles,
  TextQuote,
  TimerReset,
  Users,
  UsersRound,
  Webhook,
  Workflow,
} from './ui/icons.ts';

export type Section = { path: string; name: string; icon: LucideIcon; forDevelopers?: boolean };

/** The pages of the menu, in groups. */
export const sectionGroups: { name: string; sections: Section[] }[] = [
  { name: '', sections: [{ path: '/overview', name: 'Overview', icon: LayoutDashboard, forDevelopers: true }] },
  {
    name: 'Data',
    sections: [
      { path: '/files', name: 'Files', icon: Files },
      { path: '/extractions', name: 'Extractions', icon: FileSearch },
      { path: '/knowledge', name: 'Knowledge', icon: Library },
      { path: '/answers', name: 'Answers', icon: TextQuote },
      { path: '/kv', name: 'Key-value', icon: ListTree },
      { path: '/config', name: 'Config', icon: FileText, forDevelopers: true },
    ],
  },
  {
    name: 'Automation',
    sections: [
      { path: '/automations', name: 'Automations', icon: Workflow },
      { path: '/runs', name: 'Runs', icon: Activity },
      { path: '/approvals', name: 'Approvals', icon: Inbox },
      { path: '/models', name: 'Language models', icon: Sparkles, forDevelopers: true },
      { path: '/webhooks', name: 'Webhooks', icon: Webhook, forDevelopers: true },
      { path: '/secrets', name: 'Secrets', icon: Lock, forDevelopers: true },
    ],
  },
  {
    name: 'People and agents',
    sections: [
      { path: '/users', name: 'Users', icon: Users, forDevelopers: true },
      { path: '/orgs', name: 'Organisations', icon: Building2 },
      { path: '/teams', name: 'Teams', icon: UsersRound },
      { path: '/agents', name: 'Agents', icon: Bot },
      { path: '/threads', name: 'Threads', icon: MessagesSquare, forDevelopers: true },
      { path: '/installations', name: 'Installations', icon: Download, forDevelopers: true },
    ],
  },
  {
    name: 'App',
    sections: [
      { path: '/keys', name: 'Keys and tokens', icon: KeyRound },
      { path: '/issuers', name: 'Identity issuers', icon: Fingerprint, forDevelopers: true },
      { path: '/usage', name: 'Usage and quotas', icon: Gauge, forDevelopers: true },
      { path: '/audit', name: 'Audit log', icon: History, forDevelopers: true },
      { path: '/erasures', name: 'Erasures', icon: Eraser, forDevelopers: true },
      { path: '/jobs', name: 'Set-aside jobs', icon: TimerReset, forDevelopers: true },
      { path: '/sandboxes', name: 'Sandboxes', icon: Boxes, forDevelopers: true },
      { path: '/apps', name: 'Apps', icon: AppWindow, forDevelopers: true },
    ],
  },
];

export function visibleSections(isDeveloper: boolean) {
  return sectionGroups
    .map(({ name, sections }) => ({ name, sections: sections.filter((one) => isDeveloper || !one.forDevelopers) }))
    .filter(({ sections }) => sections.length > 0);
}
