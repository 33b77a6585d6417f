import { Type } from 'typebox';
import { bodyBudgets } from '../http/body-budgets.ts';
import { page, pageOf, pageQuery, pageRequest } from '../http/pages.ts';
import { registerResource } from '../http/resource.ts';
import { type Api, everyCaller, operators, ref } from '../http/route.ts';
import type { StreamHub } from '../http/sse.ts';
import { formatId } from '../ids.ts';
import type { Caller } from '../tenancy/caller.ts';
import type { AutomationService } from './definitions/service.ts';
import {
  presentAutomation,
  presentEntry,
  presentJournal,
  presentRun,
  presentRunSummary,
  presentSecret,
  presentVersion,
} from './present.ts';
import { outputTopic } from './runs/output.ts';
import type { RunService } from './runs/service.ts';
import {
  automationCreateSchema,
  automationSchema,
  automationUpdateSchema,
  claimSchema,
  eventResponseSchema,
  eventSchema,
  invokeSchema,
  journalPageSchema,
  journalQuery,
  listAutomationsQuery,
  listRunsQuery,
  listVisibleRunsQuery,
  runPageSchema,
  runSchema,
  secretListSchema,
  secretPutSchema,
  secretResponseSchema,
  signalSchema,
  statusSchema,
  workflowVersionSchema,
} from './schema.ts';

const tag = 'Automations';
const legacyRun = '/protected/api/v1/developer/apps/:app/automations/runs/:automation_run';

type AutomationRouteDeps = { automations: AutomationService; runs: RunService; streams: StreamHub };

export function registerAutomationRoutes(api: Api, deps: AutomationRouteDeps): void {
  registerDefinitions(api, deps);
  registerVersions(api, deps);
  registerRunReading(api, deps);
  registerRunChanges(api, deps);
  registerWorkRoutes(api, deps);
  registerSecrets(api, deps);
}

function registerDefinitions(api: Api, { automations, runs }: AutomationRouteDeps): void {
  registerResource(api, {
    path: '/automations',
    param: 'automation',
    ids: ['Automation', 'Automations'],
    words: ['an automation', 'automations'],
    tag,
    schema: automationSchema,
    present: presentAutomation,
    create: { callers: operators, body: automationCreateSchema, budget: bodyBudgets.graph, run: automations.create },
    list: {
      callers: operators,
      query: listAutomationsQuery,
      run: (caller, request, query) => automations.list(caller, query, request),
    },
    get: { callers: operators, run: automations.get },
    update: { callers: operators, body: automationUpdateSchema, budget: bodyBudgets.graph, run: automations.update },
    remove: { callers: operators, run: automations.remove },
  });
  for (const [verb, run] of [
    ['activate', automations.activate],
    ['pause', automations.pause],
  ] as const)
    api.provisioning(operators, {
      method: 'POST',
      path: `/automations/:automation/${verb}`,
      operationId: `${verb}Automation`,
      tag,
      changesRights: false,
      summary: verb === 'activate' ? 'Let an automation start runs' : 'Stop new runs; active runs continue',
      params: Type.Object({ automation: Type.String() }),
      responses: { 200: ref(automationSchema) },
      handler: async ({ caller, params }) => presentAutomation(await run(caller, params.automation)),
    });
  api.provisioning(operators, {
    method: 'GET',
    path: '/automations/:automation/runs',
    operationId: 'listAutomationRuns',
    tag,
    summary: 'List the runs of an automation, newest first',
    params: Type.Object({ automation: Type.String() }),
    query: Type.Object({ ...pageQuery, ...listRunsQuery.properties }),
    responses: { 200: pageOf(ref(runSchema)) },
    async handler({ caller, params, query }) {
      const request = pageRequest(query);
      const [rows, total] = await runs.list(caller, params.automation, query.status, request);
      return page(request, rows.map(presentRun), total);
    },
  });
}

/** The graphs that an automation has had: an editor compares them, and a run is drawn from its own. */
function registerVersions(api: Api, { runs }: AutomationRouteDeps): void {
  api.provisioning(operators, {
    method: 'GET',
    path: '/automations/:automation/versions',
    operationId: 'listAutomationVersions',
    tag,
    summary: 'List the versions of an automation’s graph, newest first',
    params: Type.Object({ automation: Type.String() }),
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(ref(workflowVersionSchema)) },
    async handler({ caller, params, query }) {
      const request = pageRequest(query);
      const [rows, total] = await runs.listVersions(caller, params.automation, request);
      return page(request, rows.map(presentVersion), total);
    },
  });
  api.provisioning(operators, {
    method: 'GET',
    path: '/automations/:automation/versions/:version',
    operationId: 'getAutomationVersion',
    tag,
    summary: 'Get one version of an automation’s graph',
    params: Type.Object({
      automation: Type.String(),
      version: Type.String(),
    }),
    responses: { 200: ref(workflowVersionSchema) },
    handler: async ({ caller, params }) =>
      presentVersion(await runs.getVersion(caller, params.automation, params.version)),
  });
}

function registerRunReading(api: Api, { runs, streams }: AutomationRouteDeps): void {
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/automation_runs',
    operationId: 'listVisibleAutomationRuns',
    tag,
    summary: 'List the runs of all automations, newest first',
    description:
      'End users see the runs that they invoked or whose automation they may see. Without payload and result: read those run by run.',
    query: listVisibleRunsQuery,
    responses: { 200: ref(runPageSchema) },
    async handler({ caller, query }) {
      const { rows, hasMore, cursor } = await runs.listVisible(caller, query);
      return {
        data: rows.map(presentRunSummary),
        has_more: hasMore,
        ...(cursor === undefined ? {} : { after_cursor: cursor }),
      };
    },
  });
  const params = Type.Object({ automation_run: Type.String() });
  const journalOf = async (caller: Caller, id: string, query: { limit?: number; after_cursor?: string }) => {
    const found = await runs.journal(caller, id, query.limit, query.after_cursor);
    if (!found) return { journal: null, data: [], has_more: false };
    return {
      journal: presentJournal(found.run),
      data: found.entries.map((entry) => presentEntry(entry, found.withheld)),
      ...(found.hasMore && found.cursor !== undefined ? { after_cursor: found.cursor } : {}),
      has_more: found.hasMore,
      ...(found.cursor === undefined ? {} : { resume_cursor: found.cursor }),
    };
  };
  for (const [path, prefix, callers] of [
    ['/api/v1/automation_runs/:automation_run', 'get', everyCaller],
    [legacyRun, 'developerGet', ['developer']],
  ] as const) {
    api.app(callers, {
      method: 'GET',
      path,
      operationId: `${prefix}AutomationRun`,
      tag,
      summary: 'Get a run',
      params: path === legacyRun ? Type.Object({ app: Type.String(), automation_run: Type.String() }) : params,
      responses: { 200: ref(runSchema) },
      handler: async ({ caller, params: given }) => presentRun(await runs.get(caller, given.automation_run)),
    });
    api.app(callers, {
      method: 'GET',
      path: `${path}/journal`,
      operationId: `${prefix}AutomationRunJournal`,
      tag,
      summary: 'Read the journal of a run, oldest entry first',
      params: path === legacyRun ? Type.Object({ app: Type.String(), automation_run: Type.String() }) : params,
      query: journalQuery,
      responses: { 200: ref(journalPageSchema) },
      handler: ({ caller, params: given, query }) => journalOf(caller, given.automation_run, query),
    });
  }
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/automation_runs/:automation_run/stream',
    operationId: 'streamAutomationRun',
    protocol: 'events',
    tag,
    summary: 'Follow the status of an invoked run',
    description:
      'Server-Sent Events: `run_update` with the run, immediately and at every change of its status. Ends with the run. With `Last-Event-ID`, sends every later change first, each with the run as it was then.',
    params,
    responses: { 200: Type.String({ description: 'text/event-stream' }) },
    async handler({ caller, params: given, request, reply }) {
      const run = await runs.getStreamable(caller, given.automation_run);
      return streams.open(request, reply, 'run', run.appId, run.id);
    },
  });
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/automation_runs/:automation_run/output_stream',
    operationId: 'streamAutomationRunOutput',
    protocol: 'events',
    tag,
    summary: 'Follow the texts that the language model writes for a run',
    description:
      'Server-Sent Events: `ready`, then `generation_started`, `generation_text` and `generation_ended` of each `generate` node, from the beginning or after `Last-Event-ID`. Ends with the run.',
    params,
    responses: { 200: Type.String({ description: 'text/event-stream' }) },
    async handler({ caller, params: given, request, reply }) {
      const run = await runs.getOutput(caller, given.automation_run);
      return streams.open(request, reply, outputTopic, run.appId, run.id);
    },
  });
}

function registerRunChanges(api: Api, { runs }: AutomationRouteDeps): void {
  const params = Type.Object({ automation_run: Type.String() });
  api.app(everyCaller, {
    method: 'POST',
    path: '/api/v1/automations/:automation/invoke',
    operationId: 'invokeAutomation',
    rateGroup: 'invocations',
    tag,
    summary: 'Start a run of an invoked automation',
    params: Type.Object({ automation: Type.String() }),
    body: invokeSchema,
    budget: bodyBudgets.map,
    responses: { 200: ref(runSchema) },
    handler: async ({ caller, params: given, body }) =>
      presentRun(await runs.invoke(caller, given.automation, body ?? {})),
  });
  api.provisioning(operators, {
    method: 'POST',
    path: '/automation_runs/:automation_run/cancel',
    operationId: 'cancelAutomationRun',
    tag,
    changesRights: false,
    summary: 'Cancel a run that has not ended',
    params,
    responses: { 200: ref(runSchema) },
    handler: async ({ caller, params: given }) => presentRun(await runs.cancel(caller, given.automation_run)),
  });
  api.provisioning(operators, {
    method: 'POST',
    path: '/automation_runs/:automation_run/retry',
    operationId: 'retryAutomationRun',
    tag,
    changesRights: false,
    summary: 'Start a new run from one that has ended, with the same payload',
    params,
    responses: { 201: ref(runSchema) },
    handler: async ({ caller, params: given }) => presentRun(await runs.retry(caller, given.automation_run)),
  });
  api.provisioning(operators, {
    method: 'POST',
    path: '/automation_runs/:automation_run/signal',
    operationId: 'signalAutomationRun',
    tag,
    changesRights: false,
    summary: 'Send a signal to a run',
    description: 'Kept until a `wait_for_signal` of that name takes it.',
    params,
    body: signalSchema,
    budget: bodyBudgets.map,
    responses: { 200: ref(runSchema) },
    handler: async ({ caller, params: given, body }) =>
      presentRun(await runs.signal(caller, given.automation_run, body.name, body.payload)),
  });
  api.provisioning(operators, {
    method: 'POST',
    path: '/events',
    operationId: 'emitEvent',
    rateGroup: 'invocations',
    tag,
    changesRights: false,
    summary: 'Emit an event that may start automations',
    body: eventSchema,
    budget: bodyBudgets.map,
    responses: { 201: eventResponseSchema },
    async handler({ caller, body }) {
      return { id: formatId('event', await runs.emit(caller, body.name, body.payload)), name: body.name };
    },
  });
}

/** For automations without a workflow: an external worker claims runs and reports on them. */
function registerWorkRoutes(api: Api, { runs }: AutomationRouteDeps): void {
  api.provisioning(operators, {
    method: 'POST',
    path: '/automations/:automation/claim',
    operationId: 'claimAutomationRun',
    tag,
    changesRights: false,
    summary: 'Claim the oldest pending run of an automation without a workflow',
    params: Type.Object({ automation: Type.String() }),
    body: claimSchema,
    responses: { 200: ref(runSchema), 204: null },
    async handler({ caller, params, body, reply }) {
      const run = await runs.claim(caller, params.automation, body.lease_seconds);
      if (run) return presentRun(run);
      reply.code(204);
      return null;
    },
  });
  api.provisioning(operators, {
    method: 'POST',
    path: '/automation_runs/:automation_run/status',
    operationId: 'reportAutomationRun',
    tag,
    changesRights: false,
    summary: 'Report on a claimed run; `running` renews the claim',
    params: Type.Object({ automation_run: Type.String() }),
    body: statusSchema,
    budget: bodyBudgets.map,
    responses: { 200: ref(runSchema) },
    handler: async ({ caller, params, body }) => presentRun(await runs.report(caller, params.automation_run, body)),
  });
}

function registerSecrets(api: Api, { automations }: AutomationRouteDeps): void {
  const params = Type.Object({ name: Type.String() });
  api.provisioning(operators, {
    method: 'GET',
    path: '/secrets',
    operationId: 'listAppSecrets',
    tag,
    summary: 'List the names of the app’s secrets',
    responses: { 200: secretListSchema },
    handler: async ({ caller }) => ({ data: (await automations.listSecrets(caller)).map(presentSecret) }),
  });
  api.provisioning(operators, {
    method: 'PUT',
    path: '/secrets/:name',
    operationId: 'putAppSecret',
    audit: 'durable',
    tag,
    changesRights: false,
    summary: 'Set a secret that graphs read as `$secrets.NAME`',
    params,
    body: secretPutSchema,
    responses: { 200: ref(secretResponseSchema) },
    handler: async ({ caller, params: given, body }) =>
      presentSecret(await automations.putSecret(caller, given.name, body.value)),
  });
  api.provisioning(operators, {
    method: 'DELETE',
    path: '/secrets/:name',
    operationId: 'deleteAppSecret',
    audit: 'durable',
    tag,
    changesRights: false,
    summary: 'Delete a secret',
    params,
    responses: { 204: null },
    handler: ({ caller, params: given }) => automations.removeSecret(caller, given.name),
  });
}
