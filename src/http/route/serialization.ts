import { SerializerSelector } from '@fastify/fast-json-stringify-compiler';

type Serializer = ReturnType<ReturnType<ReturnType<typeof SerializerSelector>>>;
type RouteSchema = Parameters<ReturnType<ReturnType<typeof SerializerSelector>>>[0];

const select = SerializerSelector();

/**
 * Serialisers by the JSON of their schema, for all servers of the process. Every route shares the error schemas, for
 * example.
 */
const serializers = new Map<string, Serializer>();

/**
 * Compiles the framework's own serialisers when the first response needs them. Over a hundred routes have three or
 * more each, and compiling all of them would take seconds at startup.
 */
export function buildSerializer(sharedSchemas: unknown, options: unknown): (route: RouteSchema) => Serializer {
  let compile: ((route: RouteSchema) => Serializer) | undefined;
  const compileRoute = (route: RouteSchema): Serializer => {
    compile ??= select(quickMembers(sharedSchemas as object), options as Parameters<typeof select>[1]);
    return compile({ ...route, schema: withQuickNull(route.schema) as RouteSchema['schema'] });
  };
  return (route) => {
    let serialize: Serializer | undefined;
    return (document) => {
      serialize ??= compileOnce(route, compileRoute);
      return serialize(document);
    };
  };
}

function compileOnce(route: RouteSchema, compile: (route: RouteSchema) => Serializer): Serializer {
  const key = JSON.stringify(route.schema);
  const serialize = serializers.get(key) ?? compile(route);
  serializers.set(key, serialize);
  return serialize;
}

/**
 * A schema that writes `X or null` by a test for null. To choose between the two, the framework would check every value
 * against X, including the formats of its strings, which takes four times as long as writing it.
 */
function withQuickNull(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  const known = quickSchemas.get(schema);
  if (known !== undefined) return known;
  const quick = Array.isArray(schema) ? schema.map(withQuickNull) : quickMembers(schema);
  quickSchemas.set(schema, quick);
  return quick;
}

const quickSchemas = new WeakMap<object, object>();
const none = { type: 'null' };

function quickMembers(schema: object): object {
  const members = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, withQuickNull(value)]));
  const { anyOf, ...rest } = members as { anyOf?: { type?: unknown }[] };
  const other = anyOf?.length === 2 && anyOf[1]?.type === none.type ? anyOf[0] : undefined;
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
  return other === undefined ? members : { ...rest, if: none, then: none, else: other };
}
