import { operators } from '../http/route/access.ts';
import { pageOf, pageQuery, readPage } from '../http/route/pages.ts';
import { compact, iso, presentSandboxId } from '../http/route/present.ts';
import { type Api, ref } from '../http/route/route.ts';
import { formatId } from '../lib/ids.ts';
import { Type } from '../lib/type.ts';
import type { Scope } from '../tenancy/caller.ts';
import { setAsideJobSchema } from './schema.ts';
import { jobUuid, type SetAsideJobService } from './service.ts';
import type { SetAsideJobRow } from './store.ts';

const tag = 'Jobs';

/** Operations on background jobs that are no longer retried, for those who run the app. */
export function registerSetAsideJobRoutes(api: Api, { setAsideJobs }: { setAsideJobs: SetAsideJobService }): void {
  api.provisioning(operators, {
    method: 'GET',
    path: '/jobs',
    operationId: 'listSetAsideJobs',
    tag,
    summary: 'List background jobs that are set aside, newest first',
    description:
      'Jobs that failed too often, or crashed even in a separate process. The resource in `about` waits for the job.',
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(ref(setAsideJobSchema)) },
    handler: ({ caller, query }) =>
      readPage(
        query,
        (request) => setAsideJobs.list(caller, request),
        (row) => presentJob(caller, row),
      ),
  });
  api.provisioning(operators, {
    method: 'POST',
    path: '/jobs/:job/retry',
    operationId: 'retrySetAsideJob',
    changesRights: false,
    tag,
    summary: 'Retry a job that is set aside',
    description:
      'Returns immediately. The next free worker runs the job from the start. 404 if the job is no longer set aside.',
    responses: { 202: ref(setAsideJobSchema) },
    handler: async ({ caller, params }) =>
      presentJob(caller, await setAsideJobs.retry(caller, (params as { job: string }).job)),
  });
}

function presentJob(scope: Scope, row: SetAsideJobRow) {
  return compact({
    id: formatId('job', jobUuid(row.id)),
    app: formatId('app', scope.appId),
    sandbox: presentSandboxId(scope.sandboxId),
    task: row.task,
    about: row.subject && row.subjectId && formatId(row.subject, row.subjectId),
    reason: row.reason,
    attempts: row.attempts,
    crashes: row.crashes,
    set_aside_at: iso(row.setAsideAt),
  });
}
