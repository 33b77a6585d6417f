import { isObject, type JsonObject, resolveReference, schemaBounds } from './schema-shape.ts';

/** The schema for the data of one piece of a text, and how the results of pieces become one value. */
export type PieceSchema = {
  schema: JsonObject;
  /** `by_rule`: arrays are joined and scalars chosen. `by_model`: the language model combines the results. */
  merge: 'by_rule' | 'by_model';
};

/** Keywords that a single piece need not satisfy, because other pieces may hold what is missing. */
const wholeOnly = [
  'required',
  'minItems',
  'minProperties',
  'contains',
  'minContains',
  'maxContains',
  'dependentRequired',
  'dependencies',
];
const choices = ['anyOf', 'oneOf', 'allOf'];
/** An object or array with one of these keywords cannot be merged member by member. */
const unmergeable = [
  ...[...choices, 'if', 'not', 'const', 'enum', '$dynamicRef', '$recursiveRef'],
  ...['patternProperties', 'propertyNames', 'dependentSchemas', 'unevaluatedProperties', 'prefixItems'],
];

/** No rule merges values of this schema. */
class Unmergeable extends Error {}

/**
 * Relaxes a schema along its spine, the objects from the root down through `properties`: what the whole document must
 * have is not required of each piece. Items of arrays keep their schema, because each comes from one piece.
 */
export function pieceSchemaOf(schema: JsonObject): PieceSchema {
  try {
    return { schema: withDefinitions(schema, new Relaxation(schema).relax(schema, [])), merge: 'by_rule' };
  } catch (error) {
    if (!(error instanceof Unmergeable)) throw error;
    return { schema: withDefinitions(schema, orNull(schema)), merge: 'by_model' };
  }
}

class Relaxation {
  readonly #root: JsonObject;
  /** References may expand a small schema into a large one. */
  #schemasLeft: number = schemaBounds.valuesMax;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  relax(schema: unknown, references: readonly string[]): JsonObject {
    this.#schemasLeft -= 1;
    if (this.#schemasLeft < 0) throw new Unmergeable();
    if (schema === true) return {};
    if (!isObject(schema)) throw new Unmergeable();
    if (isScalar(schema)) return orNull(schema);
    if (typeof schema.$ref === 'string') return this.#relaxReference(schema, schema.$ref, references);
    if (Array.isArray(schema.anyOf)) return this.#relaxOptional(schema, schema.anyOf, references);
    if (unmergeable.some((key) => key in schema)) throw new Unmergeable();
    const members = without(schema, wholeOnly);
    if (!isObject(schema.properties)) return members;
    const properties = Object.entries(schema.properties).map(([name, property]) => [
      name,
      this.relax(property, references),
    ]);
    return { ...members, properties: Object.fromEntries(properties) };
  }

  #relaxReference(schema: JsonObject, name: string, references: readonly string[]): JsonObject {
    const beside = without(schema, ['$ref', ...annotations, ...definitionKeywords]);
    if (references.includes(name) || Object.keys(beside).length > 0) throw new Unmergeable();
    return this.relax(resolveReference(this.#root, name), [...references, name]);
  }

  /** A choice between a schema and null is an optional value. Any other choice is left to the model. */
  #relaxOptional(schema: JsonObject, anyOf: readonly unknown[], references: readonly string[]): JsonObject {
    const [only, ...others] = anyOf.filter((choice) => !(isObject(choice) && choice.type === 'null'));
    const beside = without(schema, ['anyOf', ...annotations, ...definitionKeywords]);
    if (others.length > 0 || Object.keys(beside).length > 0) throw new Unmergeable();
    return orNull(this.relax(only, references));
  }
}

const annotations = ['$schema', '$id', '$comment', 'title', 'description', 'default', 'examples', 'deprecated'];
const definitionKeywords = ['$defs', 'definitions'];

/** Whether the schema's values are neither objects nor arrays. */
function isScalar(schema: JsonObject): boolean {
  if ('$ref' in schema || '$dynamicRef' in schema || '$recursiveRef' in schema) return false;
  const types = Array.isArray(schema.type) ? schema.type : [schema.type];
  if (types.includes('object') || types.includes('array')) return false;
  if (schema.type === undefined && ['properties', 'items', 'prefixItems', 'if'].some((key) => key in schema))
    return false;
  return choices.every((key) => {
    const among = schema[key];
    return !Array.isArray(among) || among.every((choice) => isObject(choice) && isScalar(choice));
  });
}

function orNull(schema: JsonObject): JsonObject {
  return { anyOf: [without(schema, [...definitionKeywords, '$schema', '$id']), { type: 'null' }] };
}

function withDefinitions(root: JsonObject, schema: JsonObject): JsonObject {
  return {
    ...schema,
    ...Object.fromEntries(definitionKeywords.flatMap((key) => (key in root ? [[key, root[key]]] : []))),
  };
}

function without(schema: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !keys.includes(key)));
}
