import { useState } from 'react';
import { PrincipalPicker } from '../principals/picker.tsx';
import type { PrincipalKind } from '../principals/principals.ts';
import { Dialog, Form } from './dialog.tsx';
import { CodeField, type Described, Field, fieldError, Switch } from './field.tsx';
import { parseJson } from './json.ts';
import { useAction } from './query.ts';

export type FieldSpec = {
  name: string;
  label: string;
  kind?: 'text' | 'long' | 'email' | 'password' | 'number' | 'select' | 'json' | 'principal' | 'switch';
  options?: [value: string, name: string][];
  principals?: PrincipalKind[];
  hint?: string;
  required?: boolean;
  placeholder?: string;
  /** If it is emptied in a change, it is sent as null instead of being left out. */
  clearable?: boolean;
  /** Whether the other values call for it. If not, it is neither shown nor sent. */
  when?: (values: Record<string, string>) => boolean;
};

/** The fields of what has only a name. */
export const nameField: FieldSpec[] = [{ name: 'name', label: 'Name', required: true }];

/** The body that a form sends. For a change, only what differs from the initial values. */
type Body = Record<string, unknown>;

/** A form in a dialog, built from a list of fields. Each error from the API is shown next to its field. */
export function FormDialog({
  title,
  lead,
  submit,
  fields,
  initial = {},
  isChange = false,
  onSubmit,
  onClose,
}: {
  title: string;
  lead?: string;
  submit: string;
  fields: FieldSpec[];
  initial?: Body;
  /** Whether the form changes a resource. It then sends only what is different. */
  isChange?: boolean;
  onSubmit: (body: Body) => Promise<unknown>;
  onClose: () => void;
}) {
  const [values, setValues] = useState<Record<string, string>>(() =>
    Object.fromEntries(fields.map((field) => [field.name, toText(field, initial[field.name])])),
  );
  const called = fields.filter(({ when }) => when === undefined || when(values));
  const save = useAction(async () => {
    const body: Body = {};
    for (const field of called) {
      const text = values[field.name] ?? '';
      if (isChange && text === toText(field, initial[field.name])) continue;
      if (text !== '') body[field.name] = toValue(field, text);
      else if (isChange) body[field.name] = field.clearable ? null : '';
    }
    await onSubmit(body);
    onClose();
  });
  const shown = called.map(({ name }) => name);
  return (
    <Dialog title={title} onClose={onClose}>
      {lead === undefined ? null : <p className="faint">{lead}</p>}
      <Form
        submit={submit}
        busy={save.busy}
        error={save.error}
        shownFields={shown}
        onSubmit={() => save.run()}
        onCancel={onClose}
      >
        {called.map((field) => (
          <SpecField
            key={field.name}
            field={field}
            value={values[field.name] ?? ''}
            error={fieldError(save.error, field.name)}
            onChange={(value) => setValues((now) => ({ ...now, [field.name]: value }))}
          />
        ))}
      </Form>
    </Dialog>
  );
}

function SpecField({
  field,
  value,
  error,
  onChange,
}: {
  field: FieldSpec;
  value: string;
  error: string | undefined;
  onChange: (value: string) => void;
}) {
  const { label, kind = 'text', hint } = field;
  if (kind === 'switch')
    return <Switch label={label} checked={value === 'true'} onChange={(on) => onChange(on ? 'true' : '')} />;
  if (kind === 'json')
    return <CodeField label={label} hint={error ?? hint ?? 'JSON.'} rows={4} value={value} onChange={onChange} />;
  return (
    <Field label={label} hint={hint} error={error}>
      {(id, described) => <Control field={field} id={id} described={described} value={value} onChange={onChange} />}
    </Field>
  );
}

function Control({
  field: { label, kind = 'text', options = [], principals = ['user'], required = false, placeholder },
  id,
  described,
  value,
  onChange,
}: {
  field: FieldSpec;
  id: string;
  described: Described;
  value: string;
  onChange: (value: string) => void;
}) {
  const common = { id, ...described, required, value, ...(placeholder === undefined ? {} : { placeholder }) };
  if (kind === 'principal')
    return <PrincipalPicker label={label} id={id} kinds={principals} any="Choose…" value={value} onChange={onChange} />;
  if (kind === 'select')
    return (
      <select {...common} onChange={(event) => onChange(event.target.value)}>
        {options.map(([option, name]) => (
          <option key={option} value={option}>
            {name}
          </option>
        ))}
      </select>
    );
  if (kind === 'long') return <textarea {...common} rows={4} onChange={(event) => onChange(event.target.value)} />;
  return (
    <input
      {...common}
      type={kind}
      autoComplete={kind === 'password' ? 'new-password' : 'off'}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}

function toText({ kind }: FieldSpec, value: unknown): string {
  if (value === undefined || value === null) return '';
  return kind === 'json' ? JSON.stringify(value, null, 2) : String(value);
}

function toValue({ kind, label }: FieldSpec, text: string): unknown {
  if (kind === 'number') return Number(text);
  if (kind === 'switch') return text === 'true';
  if (kind !== 'json') return text;
  try {
    return parseJson(text);
  } catch (error) {
    throw new Error(`${label}: ${error instanceof Error ? error.message : ''}`);
  }
}
