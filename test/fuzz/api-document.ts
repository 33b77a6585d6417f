/** The parts of openapi.json that the sweep reads. */
export type JsonSchema = {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  enum?: unknown[];
  const?: unknown;
  minimum?: number;
  minLength?: number;
  format?: string;
};

export type Parameter = { name: string; in: 'path' | 'query' | 'header'; required?: boolean; schema?: JsonSchema };

export type ApiOperation = {
  operationId: string;
  'x-callers': string[];
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: JsonSchema }> };
  responses: Record<string, { content?: Record<string, { schema: JsonSchema }> }>;
};

export type ApiDocument = {
  paths: Record<string, Record<string, ApiOperation>>;
  components: { schemas: Record<string, JsonSchema> };
};

function resolve(document: ApiDocument, schema: JsonSchema): JsonSchema {
  const name = schema.$ref?.replace('#/components/schemas/', '');
  const named = name === undefined ? undefined : document.components.schemas[name];
  return named === undefined ? schema : resolve(document, named);
}

/** Values for members and parameters by name, wherever they appear. */
export type Known = Record<string, unknown>;

/** The smallest request body that the schema accepts. */
export function sample(document: ApiDocument, given: JsonSchema, known: Known, name = ''): unknown {
  const schema = resolve(document, given);
  if (Object.hasOwn(known, name)) return known[name];
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.anyOf?.[0] !== undefined) return sample(document, schema.anyOf[0], known, name);
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case 'object':
      return Object.fromEntries(
        (schema.required ?? []).map((member) => [
          member,
          sample(document, schema.properties?.[member] ?? {}, known, member),
        ]),
      );
    case 'array':
      return [sample(document, schema.items ?? {}, known, name)];
    case 'integer':
    case 'number':
      return schema.minimum ?? 1;
    case 'boolean':
      return false;
    default:
      return schema.format === 'email' ? 'someone@example.test' : 'text';
  }
}

/** The paths of all members that a body may have, up to this depth. `[]` is the body itself. */
export function memberPaths(document: ApiDocument, given: JsonSchema, depthMax = 4): (string | number)[][] {
  const paths: (string | number)[][] = [[]];
  const visit = (each: JsonSchema, at: (string | number)[]) => {
    const schema = resolve(document, each);
    for (const option of schema.anyOf ?? []) visit(option, at);
    if (at.length >= depthMax) return;
    if (schema.items !== undefined) {
      paths.push([...at, 0]);
      visit(schema.items, [...at, 0]);
    }
    for (const [member, property] of Object.entries(schema.properties ?? {})) {
      paths.push([...at, member]);
      visit(property, [...at, member]);
    }
  };
  visit(given, []);
  return [...new Map(paths.map((path) => [path.join('.'), path])).values()];
}

/** A copy of a body with a different value at one path. Missing parents are created. */
export function withValue(body: unknown, [step, ...rest]: (string | number)[], value: unknown): unknown {
  if (step === undefined) return value;
  if (typeof step === 'number') {
    const items = Array.isArray(body) ? [...body] : [];
    items[step] = withValue(items[step], rest, value);
    return items;
  }
  const members = typeof body === 'object' && body !== null && !Array.isArray(body) ? body : {};
  return { ...members, [step]: withValue((members as Record<string, unknown>)[step], rest, value) };
}
