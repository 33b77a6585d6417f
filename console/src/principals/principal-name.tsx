import { Link } from 'wouter';
import { usePrincipal } from './principals.ts';

const pages: Record<string, string> = { usr: '/users', agt: '/agents', tem: '/teams', org: '/orgs' };

/** A user, agent, team, group or org by name, with a link to its page. */
export function PrincipalName({ id, isLink = true }: { id: string | null | undefined; isLink?: boolean }) {
  const { data: found, loading } = usePrincipal(id);
  if (!id) return <span className="faint">–</span>;
  const path = pages[id.slice(0, 3)];
  const name = (
    <span className="principal" dir="auto" title={found === undefined ? id : `${found.name} (${id})`}>
      {loading ? '…' : (found?.name ?? id)}
    </span>
  );
  return path === undefined || !isLink ? name : <Link href={`${path}/${id}`}>{name}</Link>;
}

/** The owner of a resource: the narrowest of its owners. */
export function Owner({
  of,
}: {
  of: { user?: string | null; agent?: string | null; team?: string | null; org?: string | null };
}) {
  const id = of.user ?? of.agent ?? of.team ?? of.org;
  return id ? <PrincipalName id={id} /> : <span className="faint">the app</span>;
}
