import type { FastifyRequest } from 'fastify';
import { oneHeader } from '../http/headers.ts';
import { Type } from '../lib/type.ts';
import { openAiErrorSchema } from './errors.ts';

/** Options of every route under `/v1`. */
export const common = { tag: 'OpenAI-compatible', keyAsBearer: true, errors: openAiErrorSchema } as const;

const organizationHeader = 'openai-organization';

export const organization = {
  [organizationHeader]: Type.Optional(
    Type.String({
      description:
        'The id of the organisation that owns what is created. By default, the owner is the user, or for a key the app.',
    }),
  ),
};

export function readOrganization(request: FastifyRequest): string | undefined {
  return oneHeader(request, organizationHeader);
}
