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
  const compile = select(sharedSchemas, options as Parameters<typeof select>[1]);
  return (route) => {
    let serialize: Serializer | undefined;
    return (document) => {
      serialize ??= compileOnce(route, compile);
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
