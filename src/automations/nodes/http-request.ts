import { mapOf } from '../../lib/map-schema.ts';
import { Type } from '../../lib/type.ts';
import { defineNode, NodeFailure } from './kind.ts';

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const shownHeadersMax = 100;

/** Calls an external server through the guarded fetch. An unexpected status fails the node. */
export const httpRequest = defineNode({
  kind: 'http_request',
  needs: undefined,
  members: Type.Object(
    {
      method: Type.Enum(methods),
      url: Type.String({ minLength: 1, maxLength: 8_192 }),
      headers: Type.Optional(mapOf(Type.Unknown())),
      query: Type.Optional(mapOf(Type.Unknown())),
      body: Type.Optional(Type.Unknown()),
      expect_status: Type.Optional(Type.Union([Type.Integer(), Type.Array(Type.Integer(), { minItems: 1 })])),
    },
    { additionalProperties: false },
  ),
  nests: true,
  work: {
    style: 'external',
    timeoutSeconds: 30,
    async run(members, context) {
      const url = withQuery(members.url, members.query ?? {});
      const headers: Record<string, string> = {};
      for (const [name, value] of Object.entries(members.headers ?? {}))
        if (value !== null && value !== undefined) headers[name.toLowerCase()] = textOf(value);
      headers['idempotency-key'] ??= context.commandId;
      let body: string | undefined;
      if (members.body !== undefined && members.body !== null) {
        body = textOf(members.body);
        if (typeof members.body !== 'string') headers['content-type'] ??= 'application/json';
      }
      const response = await context.services.fetch({
        method: String(members.method),
        url,
        headers,
        body,
        signal: context.signal,
      });
      const contents = response.body.replaceAll('\u0000', '\uFFFD');
      const output = {
        status: response.status,
        headers: Object.fromEntries(Object.entries(response.headers).slice(0, shownHeadersMax)),
        body: contents,
        json: parseJson(contents),
      };
      if (!expected(response.status, members.expect_status))
        throw new NodeFailure('unexpected_status', `The server returned ${response.status}.`);
      return output;
    },
  },
});

function withQuery(text: string, query: Record<string, unknown>): string {
  if (!URL.canParse(text)) throw new NodeFailure('invalid_url', 'The url is not a valid URL.');
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new NodeFailure('invalid_url', 'The url must be http or https.');
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== null && one !== undefined) url.searchParams.append(name, textOf(one));
  return url.href;
}

function expected(status: number, wanted: number | number[] | undefined): boolean {
  if (wanted === undefined) return status >= 200 && status < 300;
  return Array.isArray(wanted) ? wanted.includes(status) : wanted === status;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function parseJson(contents: string): unknown {
  try {
    return JSON.parse(contents);
  } catch {
    // Not JSON: the output has only the text.
    return null;
  }
}
