import type { FastifyRequest } from 'fastify';
import { bodyBudgets } from '../../http/body/budgets.ts';
import { iso } from '../../http/route/present.ts';
import { type Api, ref } from '../../http/route/route.ts';
import { formatId } from '../../lib/ids.ts';
import { Type } from '../../lib/type.ts';
import { presentAppended, presentPage, readerOf } from './present.ts';
import { appendClaimedSchema, appendedWorkSchema, claimedJournalSchema, readClaimedSchema } from './schema.ts';
import type { ProgramService } from './service.ts';
import type { ProgramWakes } from './wakes.ts';

/** For functions that a webhook wakes: the claim of the message is the only credential, for its run alone. */
export function registerClaimedRoutes(
  api: Api,
  { programs, wakes }: { programs: ProgramService; wakes: ProgramWakes },
): void {
  const common = {
    method: 'POST',
    tag: 'Automations',
    admit: (request: FastifyRequest) => void wakes.read(request.headers.authorization),
    headers: Type.Object({
      authorization: Type.Optional(
        Type.String({ description: '`Bearer rct_…`: the `claim` of the message that woke the function.' }),
      ),
    }),
  } as const;
  api.public({
    ...common,
    path: '/api/v1/claimed_run/journal',
    operationId: 'readClaimedRun',
    summary: 'Read the journal of the run that a function was woken for',
    description:
      'The claim is the credential. 409 `claim_lost` when it has expired, or another worker has the run. 401 for anything else.',
    idempotency: 'credential',
    body: readClaimedSchema,
    responses: { 200: ref(claimedJournalSchema) },
    async handler({ request, body }) {
      const { run, claim } = await wakes.open(request.headers.authorization);
      const page = await programs.readClaimed(run, claim, body);
      return {
        run: formatId('automationRun', run.id),
        sequence: page.sequence,
        lease_until: iso(page.leaseUntil),
        ...presentPage(page),
      };
    },
  });
  api.public({
    ...common,
    path: '/api/v1/claimed_run/entries',
    operationId: 'appendClaimedRun',
    summary: 'Write what a function did in the run that it was woken for',
    description:
      'Like `POST /automation_runs/{run}/entries`, with the claim as the credential, until it expires or is released, or its webhook is deleted.',
    idempotency: 'credential',
    body: appendClaimedSchema,
    budget: bodyBudgets.graph,
    responses: { 200: ref(appendedWorkSchema) },
    async handler({ request, body, reply }) {
      const { run, claim } = await wakes.open(request.headers.authorization);
      await programs.requireOpen(run, claim);
      return presentAppended(await programs.append(run, claim, body, readerOf(request, reply)));
    },
  });
}
