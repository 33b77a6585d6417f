import type { TProperties, TSchema, Type as TypeBox } from 'typebox';

/*
 * TypeBox's builders of the schemas that we use, with its types. All of TypeBox is 373 modules, with a parser of
 * TypeScript and forty languages of errors: an idle server would take 5 MiB more for what only builds JSON Schema
 * (docs/decisions/0880-builders-of-schemas.md). What checks a value is TypeBox's own `Value`, loaded at its first use.
 */

type Builders = Pick<
  typeof TypeBox,
  | 'Any'
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Number'
  | 'Object'
  | 'Optional'
  | 'Partial'
  | 'String'
  | 'Union'
  | 'Unknown'
  | 'Unsafe'
>;

/** Builds JSON Schema whose type `Static` tells. Each function returns what TypeBox's function of that name returns. */
export const Type = {
  Any: (options?: object) => create('Any', {}, options),
  Array: (items: TSchema, options?: object) => create('Array', { type: 'array', items }, options),
  Boolean: (options?: object) => create('Boolean', { type: 'boolean' }, options),
  Enum: (values: readonly unknown[], options?: object) => create('Enum', { enum: values }, options),
  Integer: (options?: object) => create('Integer', { type: 'integer' }, options),
  Literal: (value: unknown, options?: object) => create('Literal', { type: typeof value, const: value }, options),
  Null: (options?: object) => create('Null', { type: 'null' }, options),
  Number: (options?: object) => create('Number', { type: 'number' }, options),
  Object: createObject,
  Optional: (schema: TSchema) => addHidden(copy(schema), '~optional', true),
  Partial: ({ properties }: { properties: TProperties }, options?: object) =>
    Object.assign(
      createObject(Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, Type.Optional(each)]))),
      options,
    ),
  String: (options?: object) => create('String', { type: 'string' }, options),
  Union: (anyOf: TSchema[], options?: object) => create('Union', { anyOf }, options),
  Unknown: (options?: object) => create('Unknown', {}, options),
  Unsafe: (schema: object) => addHidden(copy(schema), '~unsafe', null),
} as unknown as Builders;

function createObject(properties: TProperties, options?: object): object {
  const required = Object.keys(properties).filter((name) => !Object.hasOwn(properties[name] ?? {}, '~optional'));
  return create('Object', { type: 'object', ...(required.length === 0 ? {} : { required }), properties }, options);
}

function create(kind: string, members: object, options: object | undefined): object {
  return addHidden({ ...members, ...options }, '~kind', kind);
}

/** With the hidden members, which say what it is. */
function copy(schema: object): object {
  return Object.defineProperties({}, Object.getOwnPropertyDescriptors(schema));
}

/** Adds a member that is not part of the JSON. */
function addHidden(schema: object, name: string, value: unknown): object {
  return Object.defineProperty(schema, name, { value, configurable: true, writable: true });
}
