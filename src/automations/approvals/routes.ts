import type { FastifyRequest } from 'fastify';
import { bodyBudgets } from '../../http/body/budgets.ts';
import { everyCaller, operators } from '../../http/route/access.ts';
import { pageOf, readPage } from '../../http/route/pages.ts';
import { iso } from '../../http/route/present.ts';
import { type Api, ref } from '../../http/route/route.ts';
import { Type } from '../../lib/type.ts';
import { presentApproval, presentLinked } from './present.ts';
import {
  answerSchema,
  approvalSchema,
  linkCreateSchema,
  linkedApprovalSchema,
  linkSchema,
  listApprovalsQuery,
} from './schema.ts';
import type { ApprovalService } from './service.ts';

const tag = 'Automations';
const linkPath = '/api/v1/approval_links/:token';

/** Approvals: questions of runs to people. */
export function registerApprovalRoutes(
  api: Api,
  { approvals, baseUrl }: { approvals: ApprovalService; baseUrl: () => string },
): void {
  const params = Type.Object({ approval: Type.String({ description: 'The approval (`apr_…`).' }) });
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/approvals',
    operationId: 'listApprovals',
    tag,
    summary: 'List the approvals that wait for the caller, newest first',
    description:
      'Users see those that they may answer now. Secret keys and developers see all of the app. `status` lists others.',
    query: listApprovalsQuery,
    responses: { 200: pageOf(ref(approvalSchema)) },
    handler: ({ caller, query }) =>
      readPage(
        query,
        (request) => approvals.list(caller, query, request),
        (row) => presentApproval(caller, row),
      ),
  });
  api.app(everyCaller, {
    method: 'GET',
    path: '/api/v1/approvals/:approval',
    operationId: 'getApproval',
    tag,
    summary: 'Get an approval',
    description: 'Its question and form. 404 for users who may not answer it.',
    params,
    responses: { 200: ref(approvalSchema) },
    handler: async ({ caller, params: given }) => presentApproval(caller, await approvals.get(caller, given.approval)),
  });
  api.app(everyCaller, {
    method: 'POST',
    path: '/api/v1/approvals/:approval/answer',
    operationId: 'answerApproval',
    audit: 'durable',
    tag,
    summary: 'Answer an approval, so that its run continues',
    description:
      'Membership counts at this moment: 404 for users outside of the audience. 409 if it was answered, has expired or was cancelled. 422 if `data` does not match the form. Secret keys and developers may answer any approval of the app; the journal says so. Personal tokens are 403.',
    params,
    body: answerSchema,
    responses: { 200: ref(approvalSchema) },
    handler: async ({ caller, params: given, body, request }) =>
      presentApproval(caller, await approvals.answer(caller, request.credential, given.approval, body.data)),
  });
  api.app(operators, {
    method: 'POST',
    path: '/api/v1/approvals/:approval/links',
    operationId: 'createApprovalLink',
    audit: 'durable',
    idempotency: 'credential',
    tag,
    summary: 'Create a link by which a person without an account answers',
    description:
      'The link is a credential: send it only to that person. It shows the form and takes one answer, which the journal attributes to the holder of the link. 409 if the approval no longer waits.',
    params,
    body: linkCreateSchema,
    responses: { 201: ref(linkSchema) },
    async handler({ caller, params: given, body }) {
      const { url, expiresAt } = await approvals.createLink(caller, given.approval, body);
      return { url, expires_at: iso(expiresAt) };
    },
  });
  registerLinks(api, { approvals, baseUrl });
}

function registerLinks(api: Api, { approvals, baseUrl }: { approvals: ApprovalService; baseUrl: () => string }): void {
  const params = Type.Object({ token: Type.String({ maxLength: 200 }) });
  api.public({
    method: 'GET',
    path: linkPath,
    operationId: 'getLinkedApproval',
    tag,
    summary: 'Show the question of a link',
    description:
      'The URL is the credential. Changes nothing. Browsers are sent to the page of the console with the form.',
    params,
    responses: { 200: ref(linkedApprovalSchema) },
    async handler({ params: given, request, reply }) {
      reply.header('cache-control', 'no-store');
      if (isBrowser(request))
        return reply.redirect(`${baseUrl()}/console/answer/${encodeURIComponent(given.token)}`, 303);
      const { link, approval } = await approvals.getLinked(given.token);
      return presentLinked(approval, link);
    },
  });
  api.public({
    method: 'POST',
    path: linkPath,
    operationId: 'answerLinkedApproval',
    audit: 'batched',
    idempotency: 'credential',
    tag,
    summary: 'Answer by a link',
    description:
      'Once: 409 afterwards, and if the approval has expired or was cancelled. 422 if `data` does not match.',
    params,
    body: answerSchema,
    budget: bodyBudgets.small,
    responses: { 200: ref(linkedApprovalSchema) },
    async handler({ params: given, body }) {
      const { link, approval } = await approvals.answerLinked(given.token, body.data);
      return presentLinked(approval, link);
    },
  });
}

function isBrowser(request: FastifyRequest): boolean {
  return /\btext\/html\b/.test(request.headers.accept ?? '');
}
