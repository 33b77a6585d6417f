import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Static, TObject, TSchema } from 'typebox';
import { preferReplica } from '../../db/database.ts';
import { defined } from '../../lib/defined.ts';
import { limits } from '../../lib/limits.ts';
import { mapOf } from '../../lib/map-schema.ts';
import { Type } from '../../lib/type.ts';
import type { Caller, DeveloperCaller, DeveloperIdentity, Identity, Scope } from '../../tenancy/caller.ts';
import type { Credential } from '../../tenancy/credential.ts';
import type { KeyArea, ScopeNeed } from '../../tenancy/key-scopes.ts';
import { type BodyBudget, bodyBudgets } from '../body/budgets.ts';
import type { RouteGroup } from '../limits/rate-limits.ts';
import { type Access, type AppCallerKind, securityOf } from './access.ts';
import { areaOf } from './areas.ts';
import type { AuditMode, AuditNote, Auditor } from './audit.ts';
import { type Idempotency, type IdempotencyCaller, type IdempotencyMode, usableKey } from './idempotency-key.ts';
import { listItemSchema, sendList } from './lists.ts';
import type { Protocol } from './protocols.ts';
import { createNameCheck } from './unknown-parameters.ts';
import { checkBody, compileCheck, jsonBytes, namedSchemas } from './validation.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export type RouteInfo = {
  method: Method;
  path: string;
  operationId: string;
  access: Access;
  /** What the scopes of a key must allow; absent where any key is allowed. */
  need: ScopeNeed | undefined;
  budget: BodyBudget;
  /** Whether anyone may send a body: nothing is checked before it is read. */
  isOpen: boolean;
  /** Whether the route takes a JSON body. */
  takesJson: boolean;
  /** Whether the handler reads a body of any type. */
  takesBytes: boolean;
  /** Whether that body may be absent. */
  bytesAreOptional: boolean;
  protocol: Protocol | undefined;
  idempotency: IdempotencyMode | undefined;
  /** The name of the route's error schema. */
  errors: string;
};

type Handler<C, P extends TSchema, Q extends TSchema, B extends TSchema> = (input: {
  caller: C;
  params: Static<P>;
  query: Static<Q>;
  body: Static<B>;
  request: FastifyRequest;
  reply: FastifyReply;
}) => Promise<unknown> | unknown;

/** One operation. The first of `responses` is the success status; there, `null` means a response without a body. */
type RouteDefinition<C, P extends TSchema, Q extends TSchema, B extends TSchema> = {
  method: Method;
  path: string;
  operationId: string;
  tag: string;
  summary: string;
  description?: string;
  params?: P;
  query?: Q;
  body?: B;
  responses: Record<number, TSchema | null>;
  /** The query is documented but not checked. The handler checks it (`checkQuery`) for the callers it applies to. */
  uncheckedQuery?: boolean;
  /** The media type of a body that is not JSON. The body is not parsed; the handler reads `request.raw`. */
  rawBody?: string;
  /** What the body contains, for the reference. By default bytes. */
  rawBodySchema?: TSchema;
  /** Whether the raw body may be absent. */
  rawBodyIsOptional?: boolean;
  /** Whether the route serves stored content of users, which may have a separate origin. */
  servesContent?: boolean;
  /** What the route sends or accepts other than JSON, for the reference. */
  protocol?: Protocol;
  /** Headers that the handler reads and checks itself, for the reference. */
  headers?: TObject;
  /** Whether cached callers are dropped afterwards. By default true for every provisioning change. */
  changesRights?: boolean;
  /** The area of the operation for keys with scopes. By default the area of its tag. */
  area?: KeyArea;
  /** Whether the operation only reads, for keys with scopes. By default true for GET and searches. */
  reads?: boolean;
  /** The rate limit group. By default `reads` for GET and `writes` for other methods. */
  rateGroup?: RouteGroup;
  /**
   * How the audit log records the operation. By default `durable` for changes of rights, `batched` for other changes.
   */
  audit?: AuditMode | 'none';
  /** The limits of the body: see `bodyBudgets`. */
  budget?: BodyBudget;
  /** How a POST takes Idempotency-Key: by default `kept`, and `repeated` for searches. A function decides by the body. */
  idempotency?: IdempotencyMode | ((body: Static<B>) => IdempotencyMode);
  /** Whether the path parameter `key` is the publishable key of the app. */
  keyInPath?: boolean;
  /** Whether the route also accepts a secret key as a bearer token. */
  keyAsBearer?: boolean;
  /** The schema of the route's errors if they do not have the usual shape. It has an `$id`. */
  errors?: TSchema & { $id?: string };
  /** Returns the WWW-Authenticate header for a 401. By default `Bearer`. */
  challenge?: (request: FastifyRequest) => string;
  /** Of a public route with a credential of its own: throws unless the headers have it, before the body is read. */
  admit?: (request: FastifyRequest) => void;
  /** Identifies the sender if the path is the credential. */
  idempotencyCaller?: (request: FastifyRequest) => Promise<IdempotencyCaller>;
  handler: Handler<C, P, Q, B>;
};

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access;
    changesRights?: boolean;
    /** The area of a key's scopes; absent where any key is allowed. */
    area?: KeyArea;
    reads?: boolean;
    /** Absent if no rate limit applies. */
    rateGroup?: RouteGroup;
    /** The media types of a body that the handler reads itself, and the headers that go with it. */
    rawBody?: string;
    rawBodySchema?: TSchema;
    /** Absent if no route matched: the smallest budget then applies. */
    budget?: BodyBudget;
    headers?: TObject;
    operationId?: string;
    keyInPath?: boolean;
    keyAsBearer?: boolean;
    challenge?: (request: FastifyRequest) => string;
  }
  interface FastifyRequest {
    identity: Identity;
    /** The credential of the identity; undefined without one. */
    credential: Credential | undefined;
    /** What the handler adds to the entry of the audit log. */
    auditNote: AuditNote | undefined;
  }
}

const developerPrefix = '/protected/api/v1/developer/apps/:app';

type ApiOptions = { bodyBytesMax: number; audit: Auditor | undefined; idempotency: Idempotency | undefined };

/**
 * Registers operations with everything that each must have: an operation id, schemas, and who may call it. `routes`
 * lists them for everything that covers all operations: openapi.json, the authorization matrix, 405 responses.
 */
export class Api {
  readonly routes: RouteInfo[] = [];
  readonly #fastify: FastifyInstance;
  readonly #bodyBytesMax: number;
  readonly #audit: Auditor | undefined;
  readonly #idempotency: Idempotency | undefined;

  constructor(fastify: FastifyInstance, options: ApiOptions) {
    this.#fastify = fastify;
    this.#bodyBytesMax = options.bodyBytesMax;
    this.#audit = options.audit;
    this.#idempotency = options.idempotency;
  }

  /** Registers an operation inside one app. */
  app<P extends TSchema = TObject, Q extends TSchema = TObject, B extends TSchema = TObject>(
    callers: readonly AppCallerKind[],
    definition: RouteDefinition<Caller, P, Q, B>,
  ): void {
    this.#add({ kind: 'app', callers }, definition, (request) => request.identity as Caller);
  }

  /**
   * Registers a provisioning operation twice: under `/api/v1` for secret keys (and for end users where `callers`
   * allows them), and under the developer path of the app for developers.
   */
  provisioning<P extends TSchema = TObject, Q extends TSchema = TObject, B extends TSchema = TObject>(
    callers: readonly AppCallerKind[],
    definition: RouteDefinition<Caller, P, Q, B>,
  ): void {
    const changing = { ...definition, changesRights: definition.changesRights ?? definition.method !== 'GET' };
    this.app(callers, { ...changing, path: `/api/v1${definition.path}` });
    const id = definition.operationId;
    this.app(['developer'], {
      ...changing,
      path: `${developerPrefix}${definition.path}`,
      operationId: `developer${id.charAt(0).toUpperCase()}${id.slice(1)}`,
    });
  }

  /** Registers an operation for holders of any API key. */
  key<P extends TSchema = TObject, Q extends TSchema = TObject, B extends TSchema = TObject>(
    definition: RouteDefinition<Scope, P, Q, B>,
  ): void {
    this.#add({ kind: 'key' }, definition, (request) => request.identity as Caller);
  }

  /** Registers an operation for developers that needs no app. */
  developer<P extends TSchema = TObject, Q extends TSchema = TObject, B extends TSchema = TObject>(
    definition: RouteDefinition<DeveloperIdentity | DeveloperCaller, P, Q, B>,
  ): void {
    const changing = { ...definition, changesRights: definition.method !== 'GET' };
    this.#add({ kind: 'developer' }, changing, (request) => request.identity as DeveloperIdentity);
  }

  /** Registers an operation that is open to anyone. */
  public<P extends TSchema = TObject, Q extends TSchema = TObject, B extends TSchema = TObject>(
    definition: RouteDefinition<undefined, P, Q, B>,
  ): void {
    this.#add({ kind: 'public' }, definition, () => undefined);
  }

  /**
   * Responds to OPTIONS with these headers, by which a protocol lists what it supports. CORS preflights are handled
   * earlier.
   */
  announce(path: string, headers: Record<string, string>): void {
    this.#fastify.options(path, { schema: { hide: true } as object }, (_request, reply) => {
      reply.code(204).headers(headers).send();
    });
  }

  #add<C, P extends TSchema, Q extends TSchema, B extends TSchema>(
    access: Access,
    definition: RouteDefinition<C, P, Q, B>,
    callerOf: (request: FastifyRequest) => C,
  ): void {
    const { method, path, operationId } = definition;
    for (const [id, schema] of namedSchemas) if (!this.#fastify.getSchema(id)) this.#fastify.addSchema(schema);
    const success = Number(Object.keys(definition.responses)[0]);
    const wantedBudget = definition.budget ?? defaultBudget(access, definition);
    const budget = { ...wantedBudget, bytesMax: Math.min(wantedBudget.bytesMax, this.#bodyBytesMax) };
    this.routes.push({
      ...{ method, path, operationId, access, budget, protocol: definition.protocol },
      isOpen: (access.kind === 'public' || access.kind === 'key') && definition.admit === undefined,
      need: needOf(access, definition),
      takesJson: definition.body !== undefined,
      takesBytes: definition.rawBody !== undefined,
      bytesAreOptional: definition.rawBodyIsOptional ?? false,
      idempotency: method === 'POST' ? documentedMode(definition) : undefined,
      errors: definition.errors?.$id ?? 'Error',
    });
    const { admit } = definition;
    const add = (fastify: FastifyInstance) =>
      fastify.route({
        method,
        url: path,
        ...(admit === undefined ? {} : { onRequest: async (request: FastifyRequest) => admit(request) }),
        ...(definition.uncheckedQuery ? { validatorCompiler: checkOnlyBody } : {}),
        config: routeConfig(access, definition, budget),
        schema: {
          operationId,
          tags: [definition.tag],
          summary: definition.summary,
          ...(definition.description === undefined ? {} : { description: definition.description }),
          params: definition.params ?? pathParams(path),
          ...(definition.query === undefined ? {} : { querystring: definition.query }),
          ...(definition.body === undefined ? {} : { body: definition.body }),
          response: responseSchemas(definition.responses, definition.errors ?? errorSchema),
          security: securityOf(access),
        },
        handler: withBodyText(this.#handlerOf(access, definition, success, callerOf)),
      });
    if (definition.rawBody === undefined) add(this.#fastify);
    else
      this.#fastify.register(async (inner) => {
        disableBodyParsing(inner);
        add(inner);
      });
  }

  /** Calls the handler of a definition: audited, once for an Idempotency-Key, and with lists sent piece by piece. */
  #handlerOf<C, P extends TSchema, Q extends TSchema, B extends TSchema>(
    access: Access,
    definition: RouteDefinition<C, P, Q, B>,
    success: number,
    callerOf: (request: FastifyRequest) => C,
  ) {
    const { method, body, rawBody, protocol } = definition;
    const itemSchema = method === 'GET' ? listItemSchema(definition.responses[success]) : undefined;
    const searchesOrLists = itemSchema !== undefined || definition.rateGroup === 'search';
    const wanted = auditModeOf(access, definition);
    const audit = wanted !== undefined && this.#audit?.isRecorded(wanted) ? this.#audit : undefined;
    const idempotency = method === 'POST' ? this.#idempotency : undefined;
    const checkNames = createNameCheck(definition.query);
    const takesNoBody = method === 'POST' && [body, rawBody, protocol].every((each) => each === undefined);
    return async (request: FastifyRequest, reply: FastifyReply) => {
      reply.code(success);
      checkNames(request, reply);
      if (takesNoBody) checkBody(emptyBody, request.body ?? null);
      const handle = async () =>
        definition.handler({
          caller: callerOf(request),
          params: request.params as Static<P>,
          query: request.query as Static<Q>,
          body: request.body as Static<B>,
          request,
          reply,
        });
      const audited = <T>(change: () => Promise<T>) =>
        audit === undefined || wanted === undefined ? change() : audit.audited(wanted, request, reply, change);
      const key = idempotency && usableKey(request, modeOf(definition, request.body as Static<B>));
      if (idempotency !== undefined && key !== undefined) {
        const caller = await definition.idempotencyCaller?.(request);
        const one = { key, ...(caller === undefined ? {} : { caller }), request, reply };
        return idempotency.run({ ...one, change: handle, wrap: audited });
      }
      const respond = async () => {
        const result = await audited(handle);
        if (reply.sent) return reply;
        if (itemSchema === undefined) return result;
        const { data, ...rest } = result as { data: Iterable<unknown> | AsyncIterable<unknown> };
        return sendList(reply, itemSchema, data, rest);
      };
      return searchesOrLists ? preferReplica(respond) : respond();
    };
  }
}

/** What hooks read of a route. */
function routeConfig<C, P extends TSchema, Q extends TSchema, B extends TSchema>(
  access: Access,
  definition: RouteDefinition<C, P, Q, B>,
  budget: BodyBudget,
): FastifyContextConfig {
  return {
    access,
    operationId: definition.operationId,
    budget,
    ...(definition.method === 'POST' ? { idempotency: documentedMode(definition) } : {}),
    keyInPath: definition.keyInPath ?? false,
    keyAsBearer: definition.keyAsBearer ?? false,
    servesContent: definition.servesContent ?? false,
    changesRights: definition.changesRights ?? false,
    ...needOf(access, definition),
    ...(access.kind === 'public' || access.kind === 'key' ? {} : { rateGroup: rateGroupOf(definition) }),
    ...defined({
      challenge: definition.challenge,
      rawBody: definition.rawBody,
      rawBodySchema: definition.rawBodySchema,
      headers: definition.headers,
    }),
  };
}

/** Retains the long strings of the body while the handler works, even if the connection closes meanwhile. */
function withBodyText<T>(handler: (request: FastifyRequest, reply: FastifyReply) => Promise<T>): typeof handler {
  return async (request, reply) => {
    const { bodyText } = request;
    if (bodyText === undefined) return handler(request, reply);
    bodyText.retain();
    try {
      return await handler(request, reply);
    } finally {
      bodyText.release();
    }
  };
}

type Repeatable<B> = {
  idempotency?: IdempotencyMode | ((body: B) => IdempotencyMode);
  rateGroup?: RouteGroup;
};

function modeOf<B>(definition: Repeatable<B>, body: B): IdempotencyMode {
  const { idempotency } = definition;
  return typeof idempotency === 'function' ? idempotency(body) : documentedMode(definition);
}

/** The mode that the reference shows: one that depends on the body is shown as `kept`. */
function documentedMode<B>({ idempotency, rateGroup }: Repeatable<B>): IdempotencyMode {
  if (typeof idempotency === 'function') return 'kept';
  return idempotency ?? (rateGroup === 'search' ? 'repeated' : 'kept');
}

/** The check of the parts of a request to a route that checks its query itself. */
function checkOnlyBody(part: Parameters<typeof compileCheck>[0]) {
  return part.httpPart === 'body' ? compileCheck(part) : () => true;
}

function defaultBudget(access: Access, { body }: { body?: TSchema }): BodyBudget {
  const isOpen = access.kind === 'public' || access.kind === 'key';
  return isOpen || body === undefined ? bodyBudgets.small : bodyBudgets.plain;
}

function needOf(
  access: Access,
  {
    tag,
    method,
    rateGroup,
    reads,
    area: own,
  }: Pick<RouteDefinition<unknown, TSchema, TSchema, TSchema>, 'tag' | 'method' | 'rateGroup' | 'reads' | 'area'>,
): ScopeNeed | undefined {
  if (access.kind !== 'app') return undefined;
  const area = own ?? areaOf(tag);
  return area === undefined ? undefined : { area, reads: reads ?? (method === 'GET' || rateGroup === 'search') };
}

function rateGroupOf({ method, rateGroup }: { method: Method; rateGroup?: RouteGroup }): RouteGroup {
  return rateGroup ?? (method === 'GET' ? 'reads' : 'writes');
}

function auditModeOf(
  access: Access,
  {
    method,
    rateGroup,
    changesRights,
    audit,
  }: Pick<RouteDefinition<unknown, TSchema, TSchema, TSchema>, 'method' | 'rateGroup' | 'changesRights' | 'audit'>,
): AuditMode | undefined {
  if (audit !== undefined) return audit === 'none' ? undefined : audit;
  if (method === 'GET' || access.kind === 'public' || rateGroup === 'search') return undefined;
  return changesRights === true ? 'durable' : 'batched';
}

/** Inside this Fastify context, no parser reads the body, whatever its type. */
function disableBodyParsing(fastify: FastifyInstance): void {
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('*', (_request, _body, done) => done(null, undefined));
}

/** A strict object for request bodies: unknown members are refused. */
export function strict<P extends Record<string, TSchema>>(properties: P, options: Record<string, unknown> = {}) {
  return Type.Object(properties, { additionalProperties: false, ...options });
}

/** What a POST without members may have as its body. */
const emptyBody = strict({});

/** A reference to a named schema (one with `$id`), with the type of that schema. */
export function ref<T extends TSchema & { $id?: string }>(schema: T) {
  if (schema.$id === undefined) throw new Error('A schema needs an $id to be referenced.');
  namedSchemas.set(schema.$id, schema);
  return Type.Unsafe<Static<T>>({ $ref: `${schema.$id}#` });
}

/** A free key-value map, stored as sent. */
export const freeMap = (description: string) =>
  mapOf(Type.Unknown(), { description, maxProperties: 1_000, ...jsonBytes(limits.metadataBytesMax) });

const errorSchema = Type.Object(
  {
    error: Type.Object({
      type: Type.String(),
      code: Type.String(),
      message: Type.String(),
      fields: Type.Array(Type.Object({ field: Type.String(), message: Type.String() })),
      details: mapOf(Type.Unknown()),
    }),
  },
  { $id: 'Error', description: 'Why the request was refused or failed, for programs (`code`) and people (`message`).' },
);

/** Path parameters are plain text. The handler looks up what they name, and returns 404 itself. */
function pathParams(path: string): TObject | undefined {
  const names = [...path.matchAll(/:(\w+)|\*/g)].map((match) => match[1] ?? '*');
  if (names.length === 0) return Type.Object({});
  return Type.Object(Object.fromEntries(names.map((name) => [name, Type.String()])));
}

function responseSchemas(responses: Record<number, TSchema | null>, errors: TSchema): Record<string, TSchema> {
  const schemas: Record<string, TSchema> = {};
  for (const [status, schema] of Object.entries(responses))
    schemas[status] = schema ?? Type.Null({ description: 'No content.' });
  schemas['4xx'] = ref(errors);
  schemas['5xx'] = ref(errors);
  return schemas;
}
