import type { FastifyReply, FastifyRequest } from 'fastify';
import type { TSchema } from 'typebox';
import { AppError } from '../../lib/errors.ts';
import { suggestNearest } from '../../lib/nearest.ts';
import { oneHeader } from '../headers.ts';

/**
 * Returns a check of the names in a query. Clients may send parameters that a route does not have, so these are
 * ignored, and a response header names them: a misspelt filter selects everything. A request with
 * `Prefer: handling=strict` (RFC 7240) is refused instead: 422 on each name.
 */
export function createNameCheck(query: TSchema | undefined): (request: FastifyRequest, reply: FastifyReply) => void {
  const known = Object.keys((query as { properties?: object } | undefined)?.properties ?? {});
  const isKnown = new Set(known);
  return (request, reply) => {
    const unknown: string[] = [];
    for (const sent in request.query as object) {
      const name = sent.endsWith('[]') ? sent.slice(0, -2) : sent;
      if (!isKnown.has(name) && unknown.length < namesMax) unknown.push(name);
    }
    if (unknown.length === 0) return;
    if (strictPreference.test(oneHeader(request, 'prefer') ?? '')) {
      const fields = unknown.map((field) => ({
        field,
        message: `is not a known parameter of this request${suggestNearest(field, known)}`,
      }));
      const message = `${fields[0]?.field}: ${fields[0]?.message}`;
      throw new AppError('invalid_parameters', message, { fields });
    }
    reply.header(
      'x-unknown-parameters',
      unknown.map((name) => encodeURIComponent(name.toWellFormed().slice(0, nameCharactersMax))).join(', '),
    );
  };
}

const namesMax = 10;
const nameCharactersMax = 100;
const strictPreference = /(?:^|[,;\s])handling\s*=\s*"?strict"?\s*(?:$|[,;])/i;
