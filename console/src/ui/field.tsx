import { lazy, type ReactNode, Suspense, useId } from 'react';
import { type ApiError, isPartOf } from '../api/client.ts';
import './field.css';
import './switch.css';

const CodeEditor = lazy(() => import('./code-editor.tsx'));

export type Described = { 'aria-describedby'?: string; 'aria-invalid'?: boolean };

/** A label with its control, a hint and the API's error. */
export function Field({
  label,
  hint,
  error,
  children,
}: {
  label: string;
  hint?: ReactNode;
  error?: string | undefined;
  children: (id: string, described: Described) => ReactNode;
}) {
  const id = useId();
  const described = {
    ...(hint !== undefined || error !== undefined ? { 'aria-describedby': `${id}-note` } : {}),
    ...(error !== undefined ? { 'aria-invalid': true } : {}),
  };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(id, described)}
      {error === undefined && hint === undefined ? null : (
        <div id={`${id}-note`} className={error === undefined ? 'hint' : 'hint wrong'}>
          {error ?? hint}
        </div>
      )}
    </div>
  );
}

/** A field for JSON, YAML and other code, with highlighting and with mistakes marked at their line. */
export function CodeField({
  label,
  hint,
  rows,
  language = 'json',
  value,
  onChange,
}: {
  label: string;
  hint: ReactNode;
  rows: number;
  language?: 'json' | 'yaml' | 'text';
  value: string;
  onChange: (value: string) => void;
}) {
  const id = useId();
  return (
    <div className="field">
      <span className="label" id={id}>
        {label}
      </span>
      <Suspense fallback={<textarea aria-label={label} className="code" rows={rows} readOnly value={value} />}>
        <CodeEditor labelledBy={id} rows={rows} language={language} value={value} onChange={onChange} />
      </Suspense>
      <p className="hint">{hint}</p>
    </div>
  );
}

/** The API's error for one member of the body, or for a part of it. */
export function fieldError(error: ApiError | undefined, ...names: string[]): string | undefined {
  return error?.fields.find(({ field }) => names.some((name) => isPartOf(field, name)))?.message;
}

/** A switch with its label. */
export function Switch({
  label,
  checked,
  disabled,
  onChange,
}: {
  label: string;
  checked: boolean;
  disabled?: boolean;
  onChange: (checked: boolean) => void;
}) {
  return (
    <label className="switch">
      <input
        type="checkbox"
        role="switch"
        aria-checked={checked}
        checked={checked}
        disabled={disabled ?? false}
        onChange={(event) => onChange(event.target.checked)}
      />
      <span>{label}</span>
    </label>
  );
}
