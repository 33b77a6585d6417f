import { type ComponentType, lazy, memo, Suspense, useDeferredValue } from 'react';
import { Link, Redirect, Route, Switch, useLocation } from 'wouter';
import { useSession } from './session.tsx';
import { Boundary } from './ui/boundary.tsx';
import { Empty } from './ui/page.tsx';
import { Skeleton } from './ui/shown.tsx';

/** A page by the name of its module's export, loaded when it is first opened. */
function page<N extends string>(load: () => Promise<Record<N, ComponentType<{ id: string }>>>, name: N) {
  return lazy(async () => ({ default: (await load())[name] }));
}

const automation = () => import('./pages/automations/automations-page.tsx');
const orgs = () => import('./pages/people/orgs-page.tsx');
const teams = () => import('./pages/people/teams-page.tsx');
const agents = () => import('./pages/people/agents-page.tsx');
const threads = () => import('./pages/people/threads-page.tsx');

const routes: [path: string, component: ReturnType<typeof page>][] = [
  ['/overview', page(() => import('./pages/overview/overview-page.tsx'), 'OverviewPage')],
  ['/files', page(() => import('./pages/files/files-page.tsx'), 'FilesPage')],
  ['/files/:id', page(() => import('./pages/files/file-page.tsx'), 'FilePage')],
  ['/extractions', page(() => import('./pages/extractions/extractions-page.tsx'), 'ExtractionsPage')],
  ['/extractions/:id', page(() => import('./pages/extractions/extraction-page.tsx'), 'ExtractionPage')],
  ['/knowledge', page(() => import('./pages/knowledge/sources-page.tsx'), 'SourcesPage')],
  ['/knowledge/search', page(() => import('./pages/knowledge/search-page.tsx'), 'SearchPage')],
  ['/knowledge/documents/:id', page(() => import('./pages/knowledge/document-page.tsx'), 'DocumentPage')],
  ['/knowledge/:id', page(() => import('./pages/knowledge/source-page.tsx'), 'SourcePage')],
  ['/answers', page(() => import('./pages/answers/answers-page.tsx'), 'AnswersPage')],
  ['/automations', page(automation, 'AutomationsPage')],
  ['/automations/new', page(automation, 'NewAutomationPage')],
  ['/automations/:id', page(() => import('./pages/automations/automation-page.tsx'), 'AutomationPage')],
  ['/runs', page(() => import('./pages/runs/runs-page.tsx'), 'RunsPage')],
  ['/runs/:id', page(() => import('./pages/runs/run-page.tsx'), 'RunPage')],
  ['/runs/:id/compare', page(() => import('./pages/runs/compare-page.tsx'), 'ComparePage')],
  ['/approvals', page(() => import('./pages/approvals/approvals-page.tsx'), 'ApprovalsPage')],
  ['/kv', page(() => import('./pages/kv/kv-page.tsx'), 'KvPage')],
  ['/config', page(() => import('./pages/app/config-page.tsx'), 'ConfigPage')],
  ['/secrets', page(() => import('./pages/app/secrets-page.tsx'), 'SecretsPage')],
  ['/users', page(() => import('./pages/people/users-page.tsx'), 'UsersPage')],
  ['/users/:id', page(() => import('./pages/people/user-page.tsx'), 'UserPage')],
  ['/orgs', page(orgs, 'OrgsPage')],
  ['/orgs/:id', page(orgs, 'OrgPage')],
  ['/teams', page(teams, 'TeamsPage')],
  ['/teams/:id', page(teams, 'TeamPage')],
  ['/agents', page(agents, 'AgentsPage')],
  ['/agents/:id', page(agents, 'AgentPage')],
  ['/threads', page(threads, 'ThreadsPage')],
  ['/threads/:id', page(threads, 'ThreadPage')],
  ['/installations', page(() => import('./pages/people/installations-page.tsx'), 'InstallationsPage')],
  ['/keys', page(() => import('./pages/keys/keys-page.tsx'), 'KeysPage')],
  ['/models', page(() => import('./pages/models/models-page.tsx'), 'ModelsPage')],
  ['/design', page(() => import('./pages/design/design-page.tsx'), 'DesignPage')],
  ['/webhooks', page(() => import('./pages/webhooks/webhooks-page.tsx'), 'WebhooksPage')],
  ['/webhooks/:id', page(() => import('./pages/webhooks/webhook-page.tsx'), 'WebhookPage')],
  ['/issuers', page(() => import('./pages/app/issuers-page.tsx'), 'IssuersPage')],
  ['/usage', page(() => import('./pages/app/usage-page.tsx'), 'UsagePage')],
  ['/audit', page(() => import('./pages/app/audit-page.tsx'), 'AuditPage')],
  ['/erasures', page(() => import('./pages/erasures/erasures-page.tsx'), 'ErasuresPage')],
  ['/erasures/:id', page(() => import('./pages/erasures/erasure-page.tsx'), 'ErasurePage')],
  ['/jobs', page(() => import('./pages/jobs/jobs-page.tsx'), 'JobsPage')],
  ['/sandboxes', page(() => import('./pages/app/sandboxes-page.tsx'), 'SandboxesPage')],
  ['/apps', page(() => import('./pages/app/apps-page.tsx'), 'AppsPage')],
];

/**
 * A page belongs to a place and a resource. It is mounted again when either changes: first the menu is painted with an
 * empty page, so that a click is answered before the new page is drawn.
 */
export const Pages = memo(function Pages() {
  const { place, isDeveloper } = useSession();
  const key = `${place.app}/${place.sandbox}/${place.org}`;
  const [location] = useLocation();
  const drawn = useDeferredValue(location);
  const home = isDeveloper ? '/overview' : '/files';
  if (drawn !== location) return <div className="skeleton" role="status" aria-label="Loading" />;
  return (
    <Boundary key={location}>
      <Suspense fallback={<Skeleton />}>
        <Switch>
          {routes.map(([path, Page]) => (
            <Route key={path} path={path}>
              {(params: { id?: string }) => (
                <div key={`${key}/${params.id ?? ''}`} className="page">
                  <Page id={params.id ?? ''} />
                </div>
              )}
            </Route>
          ))}
          <Route path="/runs/automations/:id">{({ id }) => <Redirect to={`/automations/${id}`} replace />}</Route>
          <Route path="/">
            <Redirect to={home} replace />
          </Route>
          <Route>
            <Empty title="Page not found" action={<Link href={home}>Go to the start page</Link>}>
              The address may be incomplete.
            </Empty>
          </Route>
        </Switch>
      </Suspense>
    </Boundary>
  );
});
