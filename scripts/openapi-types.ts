/* TypeScript types of the schemas of openapi.json, for the generated files of the console and of the clients. */

export type Schema = {
  $ref?: string;
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: boolean | Schema;
};

/** How types are written. */
export type Style = {
  /** Precedes names of schemas. */
  prefix: string;
  /** For people who read the types in their editor: descriptions, and members that may be passed as undefined. */
  forUsers: boolean;
};

/** The TypeScript type of a schema. */
export function typeOf(schema: Schema, style: Style): string {
  if (schema.$ref !== undefined) return `${style.prefix}${nameOf(schema)}`;
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(' | ');
  const options = schema.anyOf ?? schema.oneOf;
  // An open enum: known values are completed, and others are accepted.
  if (options?.length === 2 && options[0]?.enum && options[1]?.type === 'string' && !options[1].enum)
    return `${typeOf(options[0], style)} | (string & {})`;
  if (options) return options.map((option) => typeOf(option, style)).join(' | ');
  if (schema.allOf) return schema.allOf.map((part) => typeOf(part, style)).join(' & ');
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type }, style)).join(' | ');
  switch (schema.type) {
    case 'string':
      return 'string';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'null':
      return 'null';
    case 'array':
      return `Array<${typeOf(schema.items ?? {}, style)}>`;
    case 'object':
      return objectType(schema, style);
    default:
      return schema.properties ? objectType(schema, style) : 'unknown';
  }
}

function objectType({ properties = {}, required = [], additionalProperties }: Schema, style: Style): string {
  const members = Object.entries(properties).map(([name, schema]) =>
    member(name, schema, required.includes(name), style, schema.description),
  );
  if (members.length > 0) return style.forUsers ? `{\n${members.join('\n')}\n}` : `{ ${members.join(' ')} }`;
  const rest = typeof additionalProperties === 'object' ? typeOf(additionalProperties, style) : 'unknown';
  return additionalProperties === false ? 'Record<string, never>' : `Record<string, ${rest}>`;
}

/** A member of a type, with its description above it for users. */
export function member(name: string, schema: Schema, required: boolean, style: Style, words?: string): string {
  const type = `${key(name)}${required ? '' : '?'}: ${typeOf(schema, style)}`;
  return style.forUsers ? `${comment(words)}${type}${required ? '' : ' | undefined'};` : `${type};`;
}

export const comment = (words: string | undefined) =>
  words === undefined ? '' : `/** ${words.replaceAll('*/', '*\\/')} */\n`;
const key = (name: string) => (/^[a-z_]\w*$/i.test(name) ? name : `'${name}'`);
const literal = (value: unknown) => (typeof value === 'string' ? `'${value}'` : JSON.stringify(value));

/** The name of the schema that is referred to. */
export function nameOf(schema: Schema | undefined): string | undefined {
  return schema?.$ref?.split('/').at(-1);
}
