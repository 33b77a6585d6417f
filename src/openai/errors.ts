import type { Static } from 'typebox';
import type { ErrorDialect } from '../http/errors.ts';
import { AppError, notFound } from '../lib/errors.ts';
import { Type } from '../lib/type.ts';

export const openAiErrorSchema = Type.Object(
  {
    error: Type.Object({
      message: Type.String(),
      type: Type.String(),
      param: Type.Union([Type.String(), Type.Null()], { description: 'The invalid member of the request.' }),
      code: Type.Union([Type.String(), Type.Null()], { description: 'An error code from docs/errors.md.' }),
    }),
  },
  {
    $id: 'OpenAIError',
    description: 'Why the request was refused or failed, in the shape that OpenAI’s clients expect.',
  },
);

type ErrorBody = Static<typeof openAiErrorSchema>;

/** Errors under `/v1`: Quarry's codes in OpenAI's shape. There, an invalid parameter is 400. */
export const openAiErrors: ErrorDialect = {
  prefix: '/v1/',
  present(error) {
    const status = error.code === 'invalid_parameters' ? 400 : error.status;
    const param = error.fields[0]?.field ?? null;
    return {
      status,
      body: { error: { message: error.message, type: typeOf(status), param, code: error.code } } satisfies ErrorBody,
    };
  },
};

function typeOf(status: number): string {
  if (status >= 500) return 'server_error';
  return (
    { 401: 'authentication_error', 403: 'permission_error', 429: 'rate_limit_error' }[status] ?? 'invalid_request_error'
  );
}

/** Runs work for a member of the request, so that a 404 names that member. */
export async function nameMissing<T>(param: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof AppError) || error.code !== 'not_found') throw error;
    const { message } = notFound();
    throw new AppError('not_found', `${param}: ${message}`, { fields: [{ field: param, message }] });
  }
}
