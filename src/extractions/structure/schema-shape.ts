/** A JSON Schema whose keywords are not checked yet: an object, `true` or `false`. */
export type JsonObject = { readonly [key: string]: unknown };

export const schemaBounds = { bytesMax: 64 * 1024, depthMax: 32, valuesMax: 5_000 } as const;

const referenceKeywords = new Set(['$ref', '$dynamicRef', '$recursiveRef']);
const localReference = /^#(?:\/(?:\$defs|definitions)\/.*)?$/s;
/** Keywords whose values are data and contain no references. */
const dataKeywords = new Set(['const', 'default', 'enum', 'examples']);
/** Keywords whose members are names chosen by the author, not keywords. */
const namedKeywords = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);

/**
 * Why a schema is refused before it is compiled, or undefined if it is accepted. It must be small and must not refer
 * to anything outside itself.
 */
export function findShapeProblem(schema: JsonObject): string | undefined {
  const bytes = Buffer.byteLength(JSON.stringify(schema));
  if (bytes > schemaBounds.bytesMax) return `has ${bytes} bytes; ${schemaBounds.bytesMax} are allowed`;
  let values = 0;
  const visit = (value: unknown, depth: number, context: 'schema' | 'names' | 'data'): string | undefined => {
    values += 1;
    if (values > schemaBounds.valuesMax) return `has more than ${schemaBounds.valuesMax} values`;
    if (depth > schemaBounds.depthMax) return `is nested more than ${schemaBounds.depthMax} levels deep`;
    if (Array.isArray(value)) return firstOf(value, (item) => visit(item, depth + 1, context));
    if (!isObject(value)) return undefined;
    return firstOf(Object.entries(value), ([key, member]) => {
      if (context === 'schema' && typeof member === 'string') {
        if (referenceKeywords.has(key) && !localReference.test(member))
          return `refers to "${member.slice(0, 100)}"; a reference must be # or begin with #/$defs/ or #/definitions/`;
        if (key === '$id' && depth > 0) return 'has an $id below its root';
      }
      return visit(member, depth + 1, contextOf(context, key));
    });
  };
  return visit(schema, 0, 'schema');
}

function contextOf(context: 'schema' | 'names' | 'data', key: string): 'schema' | 'names' | 'data' {
  if (context === 'data' || (context === 'schema' && dataKeywords.has(key))) return 'data';
  return context === 'schema' && namedKeywords.has(key) ? 'names' : 'schema';
}

function firstOf<Item>(items: readonly Item[], find: (item: Item) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The schema that a local reference names, or undefined if there is none. */
export function resolveReference(root: JsonObject, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined;
  let found: unknown = root;
  for (const step of reference
    .slice(1)
    .split('/')
    .filter((part) => part !== '')) {
    const name = decodeStep(step);
    if (Array.isArray(found)) found = found[Number(name)];
    else found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  }
  return found;
}

function decodeStep(step: string): string {
  const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
