import type { OpenApi } from './client-calls.ts';
import { nameOf, type Schema } from './openapi-types.ts';

/* Python types of the schemas of openapi.json: a TypedDict for each object, also for those within others. */

type Member = { name: string; sent: string; type: string; required: boolean; words: string | undefined };

/** How the files of groups name types. */
export type TypeNames = {
  typeOf(schema: Schema): string;
  inParameter(schema: Schema): string;
  /** The type of the data of events: of several kinds, which mypy does not tell apart, it is Any. */
  ofEvents(schema: Schema): string;
  /** The members of a body. */
  members(body: Schema): Member[];
};

/** The text of `types.py`, without its first line, and the names for other files. */
export function pythonTypes(
  { components: { schemas }, webhooks }: OpenApi,
  used: [string, Schema][],
): { text: string; names: TypeNames } {
  const definitions = used.flatMap(([name, schema]) => definitionsOf(name, schema));
  const messages = Object.values(webhooks).map(({ post }) =>
    nameOf(post.requestBody?.content['application/json']?.schema),
  );
  const union = `WebhookMessage = Union[\n${messages.map((name) => `    "${name}",\n`).join('')}]`;
  const names: TypeNames = {
    typeOf: (schema) => typeOf(schema, '', 'types.'),
    inParameter: (schema) => (typeOf(schema, '', '') === 'Any' ? 'str' : typeOf(schema, '', 'types.')),
    ofEvents: (schema) => (schemas[nameOf(schema) ?? '']?.anyOf ? 'Any' : typeOf(schema, '', 'types.')),
    members(body) {
      const name = nameOf(body) ?? '';
      const { properties = {}, required = [] } = schemas[name] ?? {};
      return Object.entries(properties).map(([member, schema]) => ({
        ...{ name: argumentOf(member), sent: member, required: required.includes(member), words: schema.description },
        type: typeOf(schema, `${name}${pascal(member)}`, 'types.'),
      }));
    },
  };
  return { text: `${opening}\n\n${[...definitions, union].join('\n\n')}\n`, names };
}

const opening = `from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Dict, List, Literal, Optional, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import NotRequired
elif sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    # For programs that read the annotations. Older versions of Python have no word for a member that may be missing.
    NotRequired = Optional
`;

/** Of the words that Python reserves, those that members of the API are named by. */
const keywords = new Set(['from']);

/** The name of a member as an argument of a function. */
function argumentOf(member: string): string {
  return keywords.has(member) ? `${member}_` : member;
}

/** The definition of a named schema, after those of the objects within it. */
function definitionsOf(name: string, schema: Schema): string[] {
  const base = nameOf(schema.allOf?.[0]);
  const own = base === undefined ? schema : (schema.allOf?.at(-1) ?? schema);
  if (own.properties === undefined || Object.keys(own.properties).length === 0)
    return [`${name} = ${typeOf(own, name, '', true)}`, ...withinOf(own, name)];
  const members = Object.entries(own.properties);
  if (members.some(([member]) => !/^[a-z_]\w*$/i.test(member)))
    throw new Error(`${name} has a member that is not a name.`);
  const typeIn = ([member, inner]: [string, Schema]) => {
    const type = typeOf(inner, `${name}${pascal(member)}`, '');
    return own.required?.includes(member) ? type : `NotRequired[${type}]`;
  };
  const reserved = members.filter(([member]) => keywords.has(member));
  if (reserved.length > 0 && base !== undefined) throw new Error(`${name} has a keyword of Python as a member.`);
  // A class cannot declare members that are keywords; this form can, with types as texts.
  const pairs = reserved.map((each) => `${JSON.stringify(each[0])}: ${JSON.stringify(typeIn(each))}`).join(', ');
  const parent = reserved.length > 0 ? `_${name}Keywords` : (base ?? 'TypedDict');
  const before = reserved.length > 0 ? [`${parent} = TypedDict("${parent}", {${pairs}})`, '', ''] : [];
  const declared = members.filter(([member]) => !keywords.has(member));
  const lines = declared.flatMap(([member, inner]) => {
    const line = `    ${member}: ${typeIn([member, inner])}`;
    return inner.description === undefined ? [line] : [line, `    """${words(inner.description)}"""`];
  });
  const title = schema.description === undefined ? [] : [`    """${words(schema.description)}"""`, ''];
  const definition = [...before, `class ${name}(${parent}):`, ...title, ...lines].join('\n');
  return [...members.flatMap(([member, inner]) => withinOf(inner, `${name}${pascal(member)}`)), `\n${definition}\n`];
}

/** The definitions of the objects within a schema, which are named after their place. */
function withinOf(schema: Schema, name: string): string[] {
  if (schema.$ref !== undefined) return [];
  const { items, additionalProperties, properties } = schema;
  const parts = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  if (items !== undefined) parts.push(items);
  if (typeof additionalProperties === 'object') parts.push(additionalProperties);
  if (properties !== undefined && Object.keys(properties).length > 0 && parts.length === 0)
    return definitionsOf(name, schema);
  return parts.flatMap((part) => withinOf(part, name));
}

/** The type of a schema at the place `name`. `isEvaluated` where Python evaluates it before later definitions. */
function typeOf(schema: Schema, name: string, prefix: string, isEvaluated = false): string {
  const inner = (part: Schema) => typeOf(part, name, prefix, isEvaluated);
  const reference = (to: string) => (isEvaluated ? `"${prefix}${to}"` : `${prefix}${to}`);
  if (schema.$ref !== undefined) return reference(nameOf(schema) ?? '');
  if (schema.const !== undefined) return `Literal[${literal(schema.const)}]`;
  if (schema.enum) return `Literal[${schema.enum.map(literal).join(', ')}]`;
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return union(options.map(inner));
  if (Array.isArray(schema.type)) return union(schema.type.map((type) => inner({ ...schema, type })));
  switch (schema.type) {
    case 'string':
      return 'str';
    case 'integer':
      return 'int';
    case 'number':
      return 'float';
    case 'boolean':
      return 'bool';
    case 'null':
      return 'None';
    case 'array':
      return `List[${inner(schema.items ?? {})}]`;
  }
  if (Object.keys(schema.properties ?? {}).length > 0) return reference(name);
  if (schema.type !== 'object') return 'Any';
  return `Dict[str, ${typeof schema.additionalProperties === 'object' ? inner(schema.additionalProperties) : 'Any'}]`;
}

function union(types: string[]): string {
  const distinct = [...new Set(types)];
  if (distinct.includes('Any')) return 'Any';
  const rest = distinct.filter((type) => type !== 'None');
  const whole = rest.length > 1 ? `Union[${rest.join(', ')}]` : (rest[0] ?? 'None');
  return distinct.includes('None') && rest.length > 0 ? `Optional[${whole}]` : whole;
}

const literal = (value: unknown) =>
  typeof value === 'boolean' ? (value ? 'True' : 'False') : value === null ? 'None' : JSON.stringify(value);
const words = (text: string) => text.replaceAll('\\', '\\\\').replaceAll('"""', "'''").replace(/"$/, '\\"');
const pascal = (name: string) => name.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
