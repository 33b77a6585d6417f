import { bodyBudgets } from '../http/body/budgets.ts';
import { everyCaller, operators } from '../http/route/access.ts';
import { pageOf, pageQuery, readPage } from '../http/route/pages.ts';
import { compact } from '../http/route/present.ts';
import { registerResource } from '../http/route/resource.ts';
import { type Api, ref } from '../http/route/route.ts';
import type { StreamHub } from '../http/streams/sse.ts';
import { formatId } from '../lib/ids.ts';
import { Type } from '../lib/type.ts';
import type { Caller } from '../tenancy/caller.ts';
import type { AutomationService } from './definitions/service.ts';
import {
  presentAutomation,
  presentEntry,
  presentInvocable,
  presentJournal,
  presentRun,
  presentRunSummary,
  presentSecret,
  presentVersion,
} from './present.ts';
import { registerClaimedRoutes } from './programs/claimed-routes.ts';
import { registerProgramRoutes } from './programs/routes.ts';
import type { ProgramService } from './programs/service.ts';
import type { ProgramWakes } from './programs/wakes.ts';
import { outputTopic } from './runs/output.ts';
import type { RunService } from './runs/service.ts';
import {
  automationCheckSchema,
  automationCreateSchema,
  automationProblemsSchema,
  automationSchema,
  automationUpdateSchema,
  claimedRunSchema,
  claimSchema,
  invocableAutomationSchema,
  invokeSchema,
  journalPageSchema,
  journalQuery,
  listAutomationsQuery,
  listRunsQuery,
  listVisibleRunsQuery,
  retrySchema,
  runOutputSchema,
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

type AutomationRouteDeps = {
  automations: AutomationService;
  runs: RunService;
  programs: ProgramService;
  wakes: ProgramWakes;
  streams: StreamHub;
};

export function registerAutomationRoutes(api: Api, deps: AutomationRouteDeps): void {
  registerDefinitions(api, deps);
  registerDefinitionActions(api, deps);
  registerVersions(api, deps);
  registerInvocable(api, deps);
  registerRunReading(api, deps);
  registerRunStreams(api, deps);
  registerRunChanges(api, deps);
  registerWorkRoutes(api, deps);
  registerProgramRoutes(api, deps);
  registerClaimedRoutes(api, deps);
  registerSecrets(api, deps);
}

function registerDefinitions(api: Api, { automations }: AutomationRouteDeps): void {
  registerResource(api, {
    path: '/automations',
    param: 'automation',
    ids: ['Automation', 'Automations'],
    words: ['an automation', 'automations'],
    tag,
    about: {
      create:
        'Created as a draft, which starts no runs until it is activated. 422 names every invalid node of the workflow. 422 if the lookup key is taken.',
      list: 'Newest first, with their workflows.',
      get: 'Accepts the id or the lookup key.',
      update:
        'Omitted members keep their values. A changed workflow becomes a new version; active runs keep theirs. 422 if the lookup key is taken.',
      remove: 'Permanent: its runs, journals and versions are deleted with it.',
    },
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
}

/** Checks texts of automations, lets automations start runs, and lists the runs of one. */
function registerDefinitionActions(api: Api, { automations, runs }: AutomationRouteDeps): void {
  api.provisioning(operators, {
    method: 'POST',
    path: '/automations/check',
    operationId: 'checkAutomation',
    reads: true,
    audit: 'none',
    tag,
    changesRights: false,
    summary: 'Check the text of an automation without saving it',
    description:
      'Takes the YAML or JSON of an automation file. The problems have a line and a column; the list is empty if the file can be created.',
    body: automationCheckSchema,
    budget: bodyBudgets.graph,
    responses: { 200: automationProblemsSchema },
    async handler({ body, caller }) {
      const problems = await automations.checkFile(caller, body.text);
      return { problems: problems.map(({ line, column, node, message }) => compact({ line, column, node, message })) };
    },
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
      description:
        verb === 'activate'
          ? 'No effect if it is already active. 422 if the user or agent that it ran as was deleted.'
          : 'No effect if it is already paused.',
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
    description: 'With payload and result. Filter by `status`.',
    params: Type.Object({ automation: Type.String() }),
    query: Type.Object({ ...pageQuery, ...listRunsQuery.properties }),
    responses: { 200: pageOf(ref(runSchema)) },
    handler: ({ caller, params, query }) =>
      readPage(query, (request) => runs.list(caller, params.automation, query.status, request), presentRun),
  });
}

/** The versions of an automation's graph: an editor compares them, and a run is drawn from the version that it uses. */
function registerVersions(api: Api, { automations }: AutomationRouteDeps): void {
  api.provisioning(operators, {
    method: 'GET',
    path: '/automations/:automation/versions',
    operationId: 'listAutomationVersions',
    tag,
    summary: 'List the versions of an automation’s graph, newest first',
    description:
      'Each change of the workflow creates a version. A run uses the version that was current when it started.',
    params: Type.Object({ automation: Type.String() }),
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(ref(workflowVersionSchema)) },
    handler: ({ caller, params, query }) =>
      readPage(query, (request) => automations.listVersions(caller, params.automation, request), presentVersion),
  });
  api.provisioning(operators, {
    method: 'GET',
    path: '/automations/:automation/versions/:version',
    operationId: 'getAutomationVersion',
    tag,
    summary: 'Get one version of an automation’s graph',
    description: 'The workflow as it was given. Versions count from 1.',
    params: Type.Object({
      automation: Type.String(),
      version: Type.String(),
    }),
    responses: { 200: ref(workflowVersionSchema) },
    handler: async ({ caller, params }) =>
      presentVersion(await automations.getVersion(caller, params.automation, params.version)),
  });
}

function registerInvocable(api: Api, { automations }: AutomationRouteDeps): void {
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/invocable_automations',
    operationId: 'listInvocableAutomations',
    tag,
    summary: 'List the automations that the caller may invoke now',
    description: 'Active automations of type `invoked` whose `invoke_auth` and owner allow the caller, newest first.',
    query: Type.Object(pageQuery),
    responses: { 200: pageOf(ref(invocableAutomationSchema)) },
    handler: ({ caller, query }) =>
      readPage(query, (request) => automations.listInvocable(caller, request), presentInvocable),
  });
}

function registerRunReading(api: Api, { runs }: AutomationRouteDeps): void {
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/automation_runs',
    operationId: 'listVisibleAutomationRuns',
    tag,
    summary: 'List the runs of all automations, newest first',
    description:
      'End users see the runs that they invoked, and those of automations that are visible to them. The list leaves out payload and result: get the run to read them.',
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
      description: 'Its status, payload and result. 404 if the caller may not see the run.',
      params: path === legacyRun ? Type.Object({ app: Type.String(), automation_run: Type.String() }) : params,
      responses: { 200: ref(runSchema) },
      async handler({ caller, params: given }) {
        const run = await runs.get(caller, given.automation_run);
        const pendingFor = await runs.pendingFor(caller, run);
        return { ...presentRun(run), ...(pendingFor === undefined ? {} : { pending_for: pendingFor }) };
      },
    });
    api.app(callers, {
      method: 'GET',
      path: `${path}/journal`,
      operationId: `${prefix}AutomationRunJournal`,
      tag,
      summary: 'Read the journal of a run, oldest entry first',
      description:
        'What the run did, entry by entry. Continue with `after_cursor`. End users read the payloads of entries only in runs that act as themselves. A run without a workflow has no journal: `journal` is null and `data` is empty.',
      params: path === legacyRun ? Type.Object({ app: Type.String(), automation_run: Type.String() }) : params,
      query: journalQuery,
      responses: { 200: ref(journalPageSchema) },
      handler: ({ caller, params: given, query }) => journalOf(caller, given.automation_run, query),
    });
  }
}

function registerRunStreams(api: Api, { runs, streams }: AutomationRouteDeps): void {
  const params = Type.Object({ automation_run: Type.String() });
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/automation_runs/:automation_run/stream',
    operationId: 'streamAutomationRun',
    protocol: 'events',
    tag,
    summary: 'Follow the status of an invoked run',
    description:
      'Server-Sent Events: `run_update` with the run, immediately and at every change of its status. The stream ends when the run ends. With `Last-Event-ID`, it first sends every later change, each with the run as it was then.',
    params,
    responses: { 200: ref(runSchema) },
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
    responses: { 200: ref(runOutputSchema) },
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
    description:
      'Starts the run in the background and returns it: poll it, or follow its stream. The payload must match `input_schema` (422), and the automation must be active (422). A repeated `idempotency_key` returns the first run.',
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
    description:
      'Before the response is sent, the run and the runs that it started have ended. 409 if the run has already ended.',
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
    summary: 'Start a new run from one that has ended, from its beginning or from a node',
    description:
      'Returns the new run; `retried_from` names the old run. With `from`, it keeps the journal before that node (each copied entry has `metadata.copied_from`) and the workflow of the old run; without it, it starts with the same payload and the automation’s current workflow. 409 if the old run has not ended, and `rewind_refused` if an approval would be kept that followed a replaced output. 422 lists the starts of a node that ran more than once.',
    params,
    body: retrySchema,
    budget: bodyBudgets.map,
    responses: { 201: ref(runSchema) },
    handler: async ({ caller, params: given, body }) =>
      presentRun(await runs.retry(caller, given.automation_run, body ?? {})),
  });
  api.provisioning(operators, {
    method: 'POST',
    path: '/automation_runs/:automation_run/signal',
    operationId: 'signalAutomationRun',
    tag,
    changesRights: false,
    summary: 'Send a signal to a run',
    description: 'The signal is kept until a `wait_for_signal` node of that name takes it.',
    params,
    body: signalSchema,
    budget: bodyBudgets.map,
    responses: { 200: ref(runSchema) },
    handler: async ({ caller, params: given, body }) =>
      presentRun(await runs.signal(caller, given.automation_run, body.name, body.payload)),
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
    description:
      'For your own worker. 204 if no run is pending. The run is `running` until the worker reports its end, or until the lease expires without a renewal. 409 if the automation has a workflow.',
    params: Type.Object({ automation: Type.String() }),
    body: claimSchema,
    responses: { 200: ref(claimedRunSchema), 204: null },
    async handler({ caller, params, body, reply }) {
      const run = await runs.claim(caller, params.automation, body.lease_seconds);
      if (run) return { ...presentRun(run), ...(run.claim === null ? {} : { claim: formatId('claim', run.claim) }) };
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
    description:
      '`completed` takes `result` and `failed` takes `error`; `running` extends the lease. 409 if the run is not claimed or has ended.',
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
    description: 'Names and dates only. No operation returns a value.',
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
    description: 'Creates or replaces it. The value is encrypted; journals and results show `[redacted]` in its place.',
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
    description: 'A node that reads the secret afterwards fails. 404 if there is none.',
    params,
    responses: { 204: null },
    handler: ({ caller, params: given }) => automations.removeSecret(caller, given.name),
  });
}
