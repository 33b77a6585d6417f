import { bodyBudgets } from '../../http/body/budgets.ts';
import { operators } from '../../http/route/access.ts';
import { iso } from '../../http/route/present.ts';
import { type Api, ref } from '../../http/route/route.ts';
import { formatId, parseId } from '../../lib/ids.ts';
import { Type } from '../../lib/type.ts';
import { presentRun } from '../present.ts';
import { presentAppended, presentPage, readerOf } from './present.ts';
import {
  appendedWorkSchema,
  appendWorkSchema,
  claimedWorkSchema,
  readWorkSchema,
  workClaimSchema,
  workPageSchema,
} from './schema.ts';
import type { ProgramService } from './service.ts';

const tag = 'Automations';

/** For automations whose workflow is a program: workers claim their runs and write their journals. */
export function registerProgramRoutes(api: Api, { programs }: { programs: ProgramService }): void {
  const params = Type.Object({ automation_run: Type.String() });
  api.provisioning(operators, {
    method: 'POST',
    path: '/automation_work/claim',
    operationId: 'claimAutomationWork',
    tag,
    changesRights: false,
    summary: 'Claim a run that a program executes',
    description:
      'For a worker that executes workflows in code. Returns the run that has been ready for longest, with its journal; 204 if none is ready within `wait_seconds`. A run is ready when it is new, when what it waited for has happened, and when the claim on it has expired.',
    body: workClaimSchema,
    responses: { 200: ref(claimedWorkSchema), 204: null },
    async handler({ caller, body, request, reply }) {
      const { wait_seconds: seconds = 0, ...claim } = body;
      const claimed = await programs.claim(caller, claim, seconds, readerOf(request, reply));
      if (claimed !== undefined)
        return {
          run: presentRun(claimed.run),
          claim: formatId('claim', claimed.claim),
          lease_until: iso(claimed.leaseUntil),
          sequence: claimed.sequence,
          ...presentPage(claimed),
        };
      reply.code(204);
      return null;
    },
  });
  api.provisioning(operators, {
    method: 'POST',
    path: '/automation_runs/:automation_run/claimed_journal',
    operationId: 'readClaimedJournal',
    tag,
    changesRights: false,
    summary: 'Continue to read the journal of a claimed run',
    description:
      'Like the journal of the run, but with the secrets that redaction hides from other readers. 409 `claim_lost` without the current claim.',
    params,
    body: readWorkSchema,
    responses: { 200: ref(workPageSchema) },
    async handler({ caller, params: given, body }) {
      const run = await programs.getRun(caller, given.automation_run);
      return presentPage(await programs.read(run, parseId('claim', body.claim), body.after_cursor));
    },
  });
  api.provisioning(operators, {
    method: 'POST',
    path: '/automation_runs/:automation_run/entries',
    operationId: 'appendRunEntries',
    tag,
    changesRights: false,
    summary: 'Write what a program did in a run, and renew the claim',
    description:
      'All entries are written or none. The same batch again returns 200 and writes nothing. 409 `claim_lost` if another worker has the run or the claim was released; 409 `conflict` if `after_sequence` is not the `sequence` of the last response, or a step is not in the state for its entry.',
    params,
    body: appendWorkSchema,
    budget: bodyBudgets.graph,
    // A request that waits only renews the claim.
    idempotency: ({ wait_seconds: seconds = 0 }) => (seconds > 0 ? 'repeated' : 'kept'),
    responses: { 200: ref(appendedWorkSchema) },
    async handler({ caller, params: given, body, request, reply }) {
      const run = await programs.getRun(caller, given.automation_run);
      const { claim, ...batch } = body;
      return presentAppended(await programs.append(run, parseId('claim', claim), batch, readerOf(request, reply)));
    },
  });
}
