import { call } from '../api/client.ts';
import { useLoad } from '../ui/query.ts';

export type PrincipalKind = 'user' | 'agent' | 'team' | 'group' | 'org';
type Principal = { id: string; kind: PrincipalKind; name: string; detail?: string };

const kindByPrefix: Record<string, PrincipalKind> = {
  ...{ usr: 'user', agt: 'agent', tem: 'team', grp: 'group', org: 'org' },
};
const page = { page_size: 20 };

/** The principals of these kinds whose name, e-mail or key contains the text. */
export async function findPrincipals(kinds: PrincipalKind[], search: string): Promise<Principal[]> {
  const lists = await Promise.all(kinds.map((kind) => listKind(kind, search)));
  return lists.flat();
}

async function listKind(kind: PrincipalKind, text: string): Promise<Principal[]> {
  const search = text === '' ? {} : { search: text };
  const query = { ...page, ...search };
  switch (kind) {
    case 'user':
      return (await call('GET /api/v1/users', { query })).data.map(({ id, email, name }) => ({
        ...{ id, kind, name: name ?? email ?? id },
        ...(name !== undefined && email !== undefined ? { detail: email } : {}),
      }));
    case 'agent':
      return (await call('GET /api/v1/agents', { query })).data.map(({ id, name, lookup_key }) => ({
        ...{ id, kind, name },
        ...(lookup_key === undefined ? {} : { detail: lookup_key }),
      }));
    case 'team':
      return (await call('GET /api/v1/teams', { query })).data.map(({ id, name }) => ({ id, kind, name }));
    case 'group':
      return (await call('GET /api/v1/groups', { query })).data.map(({ id, name, external_id, namespace }) => ({
        ...{ id, kind, name: name ?? external_id, detail: namespace },
      }));
    case 'org':
      return (await call('GET /api/v1/orgs', { query })).data.map(({ id, name, slug }) => ({
        ...{ id, kind, name },
        ...(slug === undefined ? {} : { detail: slug }),
      }));
  }
}

async function findPrincipal(id: string): Promise<Principal> {
  const kind = kindByPrefix[id.slice(0, 3)];
  switch (kind) {
    case 'user': {
      const { email, name } = await call('GET /api/v1/users/{user}', { path: { user: id } });
      return { id, kind, name: name ?? email ?? id };
    }
    case 'agent':
      return { id, kind, name: (await call('GET /api/v1/agents/{agent}', { path: { agent: id } })).name };
    case 'team':
      return { id, kind, name: (await call('GET /api/v1/teams/{team}', { path: { team: id } })).name };
    case 'group': {
      const { name, external_id } = await call('GET /api/v1/groups/{group}', { path: { group: id } });
      return { id, kind, name: name ?? external_id };
    }
    case 'org':
      return { id, kind, name: (await call('GET /api/v1/orgs/{org}', { path: { org: id } })).name };
    default:
      throw new Error(`${id} names nobody.`);
  }
}

/** The name for an id: undefined if the caller may not see it. */
export function usePrincipal(id: string | null | undefined): { data: Principal | undefined; loading: boolean } {
  const known = id !== undefined && id !== null && kindByPrefix[id.slice(0, 3)] !== undefined;
  return useLoad(['principal', id], () => findPrincipal(id ?? ''), { enabled: known });
}
