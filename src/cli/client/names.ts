import { looksLikeId } from '../../lib/ids.ts';
import { ApiError, UsageError } from '../errors.ts';

/** The part of a client that finds names. */
type Client = {
  send<T>(method: 'GET', path: string, options: { query: Record<string, string | number> }): Promise<T>;
};
type Thing = Record<string, unknown> & { id: string };

type Kind = {
  path: string;
  search?: string;
  names: readonly string[];
  /** Whether the list has no pages. */
  isWhole?: boolean;
};

/** The members that name a resource of each kind, in order of precedence. */
const kinds = {
  user: { path: '/users', search: 'search', names: ['email', 'name'] },
  org: { path: '/orgs', names: ['slug', 'name'] },
  team: { path: '/teams', search: 'search', names: ['name'] },
  agent: { path: '/agents', search: 'search', names: ['lookup_key', 'name'] },
  source: { path: '/knowledge_sources', names: ['lookup_key', 'metadata.name'] },
  document: { path: '/knowledge_documents', search: 'q', names: ['title'] },
  file: { path: '/files', search: 'search', names: ['filename'] },
  upload: { path: '/uploads', names: ['filename'] },
  automation: { path: '/automations', names: ['lookup_key', 'name'] },
  thread: { path: '/threads', names: ['title'] },
  sandbox: { path: '/sandboxes', names: ['name'] },
  webhook: { path: '/webhooks', names: ['lookup_key', 'url', 'description'] },
  issuer: { path: '/identity_issuers', names: ['issuer'] },
  app: { path: '/protected/api/v1/developer/apps', names: ['name'] },
  key: { path: '/keys', names: ['name'] },
  // In a team or of a user.
  member: { path: '/members', names: ['user.email', 'agent.lookup_key', 'name'] },
  token: { path: '/tokens', names: ['name'], isWhole: true },
} as const satisfies Record<string, Kind>;

export type NamedKind = keyof typeof kinds;

export function isNamedKind(word: string): word is NamedKind {
  return Object.hasOwn(kinds, word);
}

const pagesMax = 50;
const candidatesMax = 10;

/**
 * Finds the id of a resource by e-mail, lookup key or name, case-insensitive; an id is returned unchanged. `within` is the
 * path of the resource that contains it. Throws ApiError when nothing has the name, and UsageError with the candidates
 * when several do.
 */
export async function findId(client: Client, kind: NamedKind, named: string, within = ''): Promise<string> {
  if (looksLikeId(named)) return named;
  const { path, search, names, isWhole }: Kind = kinds[kind];
  const matches: Thing[][] = names.map(() => []);
  for (let page = 1; ; page++) {
    const found = await client.send<{ data: Thing[]; has_next?: boolean }>('GET', `${within}${path}`, {
      query: isWhole ? {} : { page, page_size: 100, ...(search === undefined ? {} : { [search]: named }) },
    });
    for (const thing of found.data)
      for (const [at, member] of names.entries()) if (isSame(memberOf(thing, member), named)) matches[at]?.push(thing);
    if (!found.has_next) break;
    if (page >= pagesMax) throw new UsageError(`There are too many resources to find "${named}" by name. Pass its id.`);
  }
  const things = matches.find((each) => each.length > 0) ?? [];
  if (things.length === 0)
    throw new ApiError(404, `404: No ${kind} has the ${names.map(wordOf).join(' or ')} "${named}".`);
  if (things.length === 1 && things[0] !== undefined) return things[0].id;
  const shown = things.slice(0, candidatesMax).map((thing) => `\n  ${thing.id}  ${describe(thing, names)}`);
  const more = things.length > candidatesMax ? `\n  and ${things.length - candidatesMax} more` : '';
  throw new UsageError(`${things.length} ${kind}s are called "${named}". Pass the id of one:${shown.join('')}${more}`);
}

/** Replaces the names of owners in options by ids. */
export async function findOwners<T extends object>(client: Client, options: T): Promise<T> {
  const owners: Record<string, string> = {};
  for (const kind of ['user', 'org', 'team', 'agent', 'source', 'thread'] as const) {
    const named = (options as Record<string, unknown>)[kind];
    if (typeof named === 'string') owners[kind] = await findId(client, kind, named);
  }
  return { ...options, ...owners };
}

/** A member of a resource; `a.b` is a member of a member. */
export function memberOf(thing: Record<string, unknown>, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (value as Record<string, unknown> | null)?.[name], thing);
}

function isSame(value: unknown, named: string): boolean {
  return typeof value === 'string' && value.toLowerCase() === named.toLowerCase();
}

function wordOf(member: string): string {
  const word = member.split('.').at(-1) ?? member;
  return { email: 'e-mail', lookup_key: 'lookup key' }[word] ?? word;
}

function describe(thing: Thing, names: readonly string[]): string {
  const org = thing.org_name ?? thing.org ?? thing.source;
  const values = [...names.map((name) => memberOf(thing, name)), org].filter((value) => typeof value === 'string');
  return values.join('  ');
}
