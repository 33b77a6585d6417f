/** A schema of a library that speaks Standard JSON Schema, such as Zod, Valibot or ArkType. */
export type StandardSchema<Input = unknown, Output = Input> = {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly jsonSchema?: { readonly input: Convert; readonly output: Convert };
  };
};
type Convert = (options: { target: 'draft-2020-12' }) => Record<string, unknown>;

export type JsonSchema = { readonly [keyword: string]: unknown };
export type DataSchema = JsonSchema | StandardSchema;

/** The JSON Schema of what a library's schema takes or gives; a JSON Schema as it is. */
export function jsonSchemaOf(schema: DataSchema, side: 'input' | 'output'): Record<string, unknown> {
  if (!('~standard' in schema)) return { ...schema };
  const { vendor, jsonSchema } = (schema as StandardSchema)['~standard'];
  if (jsonSchema === undefined)
    throw new TypeError(
      `This schema of ${vendor} does not know its JSON Schema: use a later version, or a JSON Schema.`,
    );
  return jsonSchema[side]({ target: 'draft-2020-12' });
}

/** The type of the data that a schema describes. */
export type DataOf<S> = S extends StandardSchema<unknown, infer Output> ? Output : FromSchema<S>;
/** The type of what a schema accepts. */
export type InputOf<S> = S extends StandardSchema<infer Input, unknown> ? Input : FromSchema<S>;

/** The type that a JSON Schema written `as const` describes; `unknown` for keywords that types cannot follow. */
export type FromSchema<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : S extends { readonly anyOf: readonly (infer O)[] }
      ? FromSchema<O>
      : S extends { readonly type: infer T }
        ? FromType<S, T>
        : unknown;

type FromType<S, T> = T extends readonly (infer Each)[] ? FromName<S, Each> : FromName<S, T>;
type FromName<S, T> = T extends 'string'
  ? string
  : T extends 'number' | 'integer'
    ? number
    : T extends 'boolean'
      ? boolean
      : T extends 'null'
        ? null
        : T extends 'array'
          ? S extends { readonly items: infer I }
            ? FromSchema<I>[]
            : unknown[]
          : T extends 'object'
            ? FromObject<S>
            : unknown;
type FromObject<S> = S extends { readonly properties: infer P }
  ? Flat<
      { -readonly [K in keyof P as K extends RequiredOf<S> ? K : never]: FromSchema<P[K]> } & {
        -readonly [K in keyof P as K extends RequiredOf<S> ? never : K]?: FromSchema<P[K]>;
      }
    >
  : Record<string, unknown>;
type RequiredOf<S> = S extends { readonly required: readonly (infer R)[] } ? R : never;
type Flat<T> = { [K in keyof T]: T[K] };
