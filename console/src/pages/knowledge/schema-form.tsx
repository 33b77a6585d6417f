import type { ApiError } from '../../api/client.ts';
import { Field, fieldError } from '../../ui/field.tsx';
import { NumberField } from '../../ui/number-field.tsx';

/** The typed values by member, as text until parsed by the schema. */
export type Typed = Record<string, string | boolean>;
export const emptyPayload: Typed = {};

type Member = {
  type?: string;
  format?: string;
  title?: string;
  description?: string;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  pattern?: string;
  default?: unknown;
  enum?: unknown[];
};
type Members = [name: string, member: Member, required: boolean][];

/**
 * One control for each member of a payload's JSON Schema.
 * @param of the member of the body that has the payload, by which errors name its members
 */
export function SchemaFields({
  schema,
  values,
  error,
  of = 'payload',
  secret = false,
  onChange,
}: {
  schema: Record<string, unknown>;
  values: Typed;
  error: ApiError | undefined;
  of?: string;
  /** Whether the values are secrets. They are not shown while they are typed. */
  secret?: boolean;
  onChange: (values: Typed) => void;
}) {
  return membersOf(schema).map(([name, member, required]) => {
    const set = (value: string | boolean) => onChange({ ...values, [name]: value });
    const text = String(values[name] ?? '');
    const field = {
      label: `${member.title ?? labelOf(name)}${required ? '' : ' (optional)'}`,
      hint: member.description?.replace(/`(\w+)`/g, (_, other: string) => `“${labelOf(other)}”`),
      error: fieldError(error, `${of}.${name}`),
    };
    const placeholder = member.default === undefined ? undefined : String(member.default);
    if (member.type === 'integer' || member.type === 'number')
      return (
        <NumberField
          key={name}
          {...field}
          {...{ required, placeholder, min: member.minimum, max: member.maximum, isDecimal: member.type === 'number' }}
          value={text}
          onChange={set}
        />
      );
    return (
      <Field key={name} {...field}>
        {(id, described) => {
          if (member.type === 'boolean')
            return (
              <input
                id={id}
                {...described}
                type="checkbox"
                checked={values[name] === true}
                onChange={(event) => set(event.target.checked)}
              />
            );
          if (member.enum)
            return (
              <select
                id={id}
                {...described}
                required={required}
                value={text}
                onChange={(event) => set(event.target.value)}
              >
                <option value="" />
                {member.enum.map((value) => (
                  <option key={String(value)}>{String(value)}</option>
                ))}
              </select>
            );
          if (member.type === 'array')
            return (
              <textarea
                id={id}
                {...described}
                rows={2}
                placeholder="One per line"
                required={required}
                value={text}
                onChange={(event) => set(event.target.value)}
              />
            );
          return (
            <input
              id={id}
              {...described}
              type={member.format === 'uri' ? 'url' : secret ? 'password' : 'text'}
              {...(secret ? { autoComplete: 'new-password' } : {})}
              {...(member.maxLength === undefined ? {} : { maxLength: member.maxLength })}
              required={required}
              {...(placeholder === undefined ? {} : { placeholder })}
              value={text}
              onChange={(event) => {
                const { target } = event;
                const fits = target.value === '' || member.pattern === undefined || fitsPattern(target.value, member);
                target.setCustomValidity(fits ? '' : 'The server would refuse this value.');
                set(target.value);
              }}
            />
          );
        }}
      </Field>
    );
  });
}

function fitsPattern(value: string, { pattern = '' }: Member): boolean {
  return new RegExp(pattern).test(value);
}

/** The form's values of a stored payload. */
export function typedOf(schema: Record<string, unknown>, payload: Record<string, unknown>): Typed {
  const entries = membersOf(schema).flatMap(([name, { type }]): [string, string | boolean][] => {
    const value = payload[name];
    if (value === undefined || value === null) return [];
    if (type === 'boolean') return [[name, value === true]];
    return [[name, Array.isArray(value) ? value.join('\n') : String(value)]];
  });
  return Object.fromEntries(entries);
}

/** The stored payload without the members that the form has. */
export function otherMembers(schema: Record<string, unknown>, payload: Record<string, unknown>) {
  const known = new Set(membersOf(schema).map(([name]) => name));
  return Object.fromEntries(Object.entries(payload).filter(([name]) => !known.has(name)));
}

/** The payload with the types of the schema. Empty fields are omitted. */
export function readPayload(schema: Record<string, unknown>, values: Typed): Record<string, unknown> {
  const entries = membersOf(schema).flatMap(([name, { type }, required]): [string, unknown][] => {
    const value = values[name];
    if (type === 'boolean' && required) return [[name, value === true]];
    if (value === undefined || value === '' || value === false) return [];
    if (type === 'integer' || type === 'number') return [[name, Number(value)]];
    if (type === 'array')
      return [
        [
          name,
          String(value)
            .split('\n')
            .map((line) => line.trim())
            .filter(Boolean),
        ],
      ];
    return [[name, value]];
  });
  return Object.fromEntries(entries);
}

function membersOf(schema: Record<string, unknown>): Members {
  const required = (schema.required ?? []) as string[];
  return Object.entries((schema.properties ?? {}) as Record<string, Member>)
    .map(([name, member]): Members[number] => [name, member, required.includes(name)])
    .sort((a, b) => Number(b[2]) - Number(a[2]));
}

function labelOf(name: string): string {
  const words = name.replaceAll('_', ' ');
  return words === 'url' ? 'URL' : (words.charAt(0).toUpperCase() + words.slice(1)).replace(/ id$/, ' ID');
}
