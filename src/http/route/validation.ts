import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import addFormats from 'ajv-formats';
import type { Static, TSchema } from 'typebox';
import { AppError, type FieldError } from '../../lib/errors.ts';
import { limits } from '../../lib/limits.ts';
import { suggestNearest } from '../../lib/nearest.ts';
import { wordsOfPattern } from '../../lib/patterns.ts';
import { findTextProblem } from '../body/unicode.ts';

type JsonSchema = {
  type?: string;
  properties?: Record<string, JsonSchema>;
  items?: JsonSchema;
  [keyword: string]: unknown;
};

type HttpPart = 'body' | 'querystring' | 'params' | 'headers';

type Compile = (route: { schema: unknown; httpPart?: string | undefined }) => (data: unknown) => ValidationResult;

/**
 * One validator for all parts of a request. Bodies are used as sent: nothing is coerced, filled in or dropped. Query
 * values are text, so each is first converted to the type in its schema. A value that does not convert stays text and
 * fails the check.
 */
export const compileCheck: Compile = ({ schema, httpPart }) =>
  createCheck(schema as JsonSchema, (httpPart ?? 'body') as HttpPart);

/** Every referenced schema, by `$id`: the components of the OpenAPI document. */
export const namedSchemas = new Map<string, TSchema>();

/** Validators by their schema and by its JSON, for all servers of the process. */
class Validators {
  readonly #known = new WeakMap<JsonSchema, ValidateFunction>();
  readonly #compiled = new Map<string, ValidateFunction>();
  readonly #added = new Set<string>();
  readonly #allErrors: boolean;
  #ajv: Ajv | undefined;

  constructor(allErrors: boolean) {
    this.#allErrors = allErrors;
  }

  /** Called when the first value needs the schema, because compiling all schemas would take seconds at startup. */
  get(schema: JsonSchema): ValidateFunction {
    const known = this.#known.get(schema);
    if (known !== undefined) return known;
    const key = JSON.stringify(schema);
    let validate = this.#compiled.get(key);
    if (validate === undefined) {
      this.#ajv ??= createAjv(this.#allErrors);
      for (const [id, named] of namedSchemas) {
        if (!this.#added.has(id)) this.#ajv.addSchema(named, id);
        this.#added.add(id);
      }
      validate = this.#ajv.compile(schema);
      this.#compiled.set(key, validate);
    }
    this.#known.set(schema, validate);
    return validate;
  }
}

/** They report every problem of a value. */
const thorough = new Validators(true);
/** They stop at the first problem: a hundred thousand wrong items would take a second to describe. */
const brief = new Validators(false);
/** Values with more parts than this are checked briefly. */
const thoroughValuesMax = 2_000;

function createAjv(allErrors: boolean): Ajv {
  const created = new Ajv({
    strict: true,
    strictTypes: false,
    allErrors,
    coerceTypes: false,
    useDefaults: false,
    removeAdditional: false,
    allowUnionTypes: true,
    // Errors have the schema beside them, which names the members that there are.
    verbose: true,
    // The schemas are our own and typed. Checking them against the meta-schema would take longer than compiling them.
    validateSchema: false,
  });
  addFormats.default(created);
  created.addKeyword(documentTextKeyword);
  created.addKeyword(jsonBytesKeyword);
  return created;
}

/** A schema keyword that limits the size of a value stored as sent, in bytes of JSON. */
export function jsonBytes(bytesMax: number): Record<string, number> {
  return { [jsonBytesKeyword.keyword]: bytesMax };
}

const jsonBytesKeyword = {
  keyword: 'x-json-bytes-max',
  schemaType: 'number',
  error: { message: ({ schema }: { schema: number }) => `must be at most ${schema} bytes as JSON` },
  validate: (bytesMax: number, value: unknown) => Buffer.byteLength(JSON.stringify(value)) <= bytesMax,
} as const;

/** Marks a body schema that accepts documents in `content.data`: text of any kind, which may contain U+0000. */
export const documentTextKeyword = 'x-document-text';

function isDocumentText(path: string): boolean {
  return /^(?:(?:items|upserts)\.\d+\.)?content\.data$/.test(path);
}

function createCheck(schema: JsonSchema, part: HttpPart): (data: unknown) => ValidationResult {
  const documentText = schema[documentTextKeyword] === true ? isDocumentText : undefined;
  return (data) => {
    const value = readPart(part, data, schema);
    const { problem, values } = findTextProblem(value, documentText);
    if (problem) return { error: fieldsError(part, [{ field: problem.path || 'body', message: problem.message }]) };
    const validate = (values > thoroughValuesMax ? brief : thorough).get(schema);
    if (validate(value)) return { value };
    return { error: fieldsError(part, describeErrors(validate.errors ?? [], part)) };
  };
}

function readPart(part: HttpPart, data: unknown, schema: JsonSchema): unknown {
  if (part === 'querystring') return readQuery(data as Record<string, unknown>, schema);
  // A missing body arrives as null. It counts as an empty object if every member is optional.
  if (part === 'body' && data === null && schema.type === 'object' && !schema.required) return {};
  return data;
}

/** Checks a query string as routes do, for handlers that check it themselves. Throws 422 with the problems. */
export function checkQuery<T extends TSchema>(schema: T, query: unknown): Static<T> {
  let check = queryChecks.get(schema);
  if (!check) {
    check = compileCheck({ schema, httpPart: 'querystring' });
    queryChecks.set(schema, check);
  }
  const result = check(query);
  if ('error' in result) throw result.error;
  return result.value as Static<T>;
}

/** Checks a value as a request body. Throws 422 with the problems. */
export function checkBody<T extends TSchema>(schema: T, value: unknown): Static<T> {
  let check = bodyChecks.get(schema);
  if (!check) {
    check = compileCheck({ schema, httpPart: 'body' });
    bodyChecks.set(schema, check);
  }
  const result = check(value);
  if ('error' in result) throw result.error;
  return result.value as Static<T>;
}

const bodyChecks = new WeakMap<TSchema, (value: unknown) => ValidationResult>();
const queryChecks = new WeakMap<TSchema, (query: unknown) => ValidationResult>();

type ValidationResult = { value: unknown } | { error: Error };

function fieldsError(part: HttpPart, fields: FieldError[]): AppError {
  if (part === 'params') return new AppError('not_found', 'The resource does not exist, or you may not see it.');
  const first = fields[0];
  const words = first ? `${first.field}: ${first.message}` : 'The request is not valid.';
  return new AppError('invalid_parameters', fields.length > 1 ? `${words} (and ${fields.length - 1} more)` : words, {
    fields,
  });
}

function describeErrors(errors: ErrorObject[], part: HttpPart): FieldError[] {
  const fields = new Map<string, string>();
  const wrongTypes = new Set<string>();
  // For "value or null", report the problem of the value, not that null was possible.
  const telling = errors.filter((error) => error.keyword !== 'anyOf' && error.params.type !== 'null');
  const isTold = ({ instancePath }: ErrorObject) =>
    telling.some((error) => error.instancePath === instancePath || error.instancePath.startsWith(`${instancePath}/`));
  for (const error of errors) {
    if (!telling.includes(error) && isTold(error)) continue;
    const path = error.instancePath.slice(1).split('/').map(unescapePointer).filter(Boolean);
    let message = error.message ?? 'is not valid';
    if (error.keyword === 'required') {
      path.push(String(error.params.missingProperty));
      message = 'is required';
    } else if (error.keyword === 'additionalProperties' || error.keyword === 'unevaluatedProperties') {
      const name = String(error.params.additionalProperty ?? error.params.unevaluatedProperty);
      path.push(name);
      const names = Object.keys((error.parentSchema as JsonSchema).properties ?? {});
      message = `is not a known member of this request${suggestNearest(name, names) || listNames(names)}`;
    } else if (part === 'querystring' && Array.isArray(error.data) && error.parentSchema?.type !== 'array') {
      message = 'must be sent once';
    } else if (error.keyword === 'enum') {
      message = `must be one of ${(error.params.allowedValues as unknown[]).map(String).join(', ')}`;
    } else if (error.keyword === 'pattern') {
      message = wordsOfPattern(String(error.params.pattern)) ?? message;
    } else if (error.keyword === 'const') {
      message = `must be ${JSON.stringify(error.params.allowedValue)}`;
    } else {
      message = describeSize(error) ?? message;
    }
    const field = path.join('.') || 'body';
    const earlier = fields.get(field);
    if (earlier === undefined) fields.set(field, message);
    else if (error.keyword === 'type' && wrongTypes.has(field)) fields.set(field, `${earlier} or ${error.params.type}`);
    // Of the alternatives, the value has the type of this one.
    else if (error.keyword !== 'oneOf' && wrongTypes.delete(field)) fields.set(field, message);
    if (error.keyword === 'type' && earlier === undefined) wrongTypes.add(field);
    if (fields.size >= fieldErrorsMax) break;
  }
  return [...fields].map(([field, message]) => ({ field, message }));
}

const fieldErrorsMax = 50;
/** More names than that are looked up faster in the reference. */
const namesListedMax = 20;

function listNames(names: string[]): string {
  return names.length === 0 || names.length > namesListedMax ? '' : `; it has ${names.join(', ')}`;
}

/** Plain words for a value that is too short, too long or has an item twice. */
function describeSize({ keyword, params }: ErrorObject): string | undefined {
  const unit = sizeUnits[keyword.slice(3) as keyof typeof sizeUnits];
  if (keyword === 'uniqueItems') return `must not have an item twice: items ${params.j} and ${params.i} are equal`;
  if (unit === undefined) return undefined;
  const limit = Number(params.limit);
  const size = `${limit} ${limit === 1 ? unit : `${unit}s`}`;
  if (keyword.startsWith('max')) return `must have at most ${size}`;
  return limit === 1 ? 'must not be empty' : `must have at least ${size}`;
}

const sizeUnits = { Length: 'character', Items: 'item', Properties: 'member' };

function unescapePointer(segment: string): string {
  return segment.replaceAll('~1', '/').replaceAll('~0', '~');
}

/** Converts each query value to its schema's type; `key[]=a` and repeated keys both make a list. */
function readQuery(query: Record<string, unknown>, schema: JsonSchema): Record<string, unknown> {
  const read: Record<string, unknown> = {};
  for (const [name, raw] of Object.entries(query ?? {})) {
    const key = name.endsWith('[]') ? name.slice(0, -2) : name;
    const property = schema.properties?.[key];
    if (!property) {
      // Unknown parameters are ignored, but their text must be valid.
      read[key] = raw;
    } else if (property.type === 'array') {
      const earlier = (read[key] as unknown[] | undefined) ?? [];
      const items = Array.isArray(raw) ? raw : [raw];
      read[key] = [...earlier, ...items.map((item) => readScalar(String(item), property.items))];
    } else {
      // Neither `key=a&key=b` nor `key=a&key[]=b` is one value.
      read[key] = Array.isArray(raw) || Object.hasOwn(read, key) ? [raw] : readScalar(String(raw), property);
    }
  }
  return read;
}

function readScalar(text: string, schema: JsonSchema | undefined): unknown {
  if (schema?.type === 'integer' && /^-?\d{1,16}$/.test(text)) return Number(text);
  if (schema?.type === 'number' && /^-?\d{1,15}(\.\d{1,15})?$/.test(text)) return Number(text);
  if (schema?.type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

/** For schemas of integers in a query or body. The limit is PostgreSQL's integer everywhere. */
export const integerRange = { minimum: 1, maximum: limits.integerMax } as const;
