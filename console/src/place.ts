/**
 * The place of a developer's page is the first part of its address: an app, a sandbox in it, an org in it. Links keep
 * the place, and a link may lead into another app of the same developer.
 */
export type Place = { app?: string | undefined; sandbox?: string | undefined; org?: string | undefined };

export const root = '/console';
const prefixes = { app: 'dap_', sandbox: 'sbx_', org: 'org_' } as const;

/** Splits a path into the place and the page within it. */
export function readPlace(pathname: string): { place: Place; page: string } {
  const parts = pathname.slice(root.length).split('/').slice(1);
  const place: Place = {};
  for (const [kind, prefix] of Object.entries(prefixes) as [keyof Place, string][])
    if (parts[0]?.startsWith(prefix) && (kind === 'app' || place.app !== undefined)) place[kind] = parts.shift();
  return { place, page: `/${parts.join('/')}` };
}

/** The first part of all addresses in a place. */
export function baseOf({ app, sandbox, org }: Place): string {
  return [root, app, sandbox, org].filter((part) => part !== undefined).join('/');
}

/** The list that a page belongs to. A different place may not have the resource that the page shows. */
export function listOf(page: string): string {
  return `/${page.split('/')[1] ?? ''}`;
}
