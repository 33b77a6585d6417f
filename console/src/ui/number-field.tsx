import type { ReactNode } from 'react';
import { Field } from './field.tsx';
import './number-field.css';

export type NumberBounds = {
  min?: number | undefined;
  max?: number | undefined;
  /** Whether it may have decimal places. */
  isDecimal?: boolean;
};

/** A field for a number, whose value is its text: '' for none. The browser refuses what is out of bounds. */
export function NumberField({
  label,
  unit,
  hint,
  error,
  min,
  max,
  isDecimal = false,
  required = false,
  placeholder,
  value,
  onChange,
}: NumberBounds & {
  label: string;
  /** What is counted, shown after the number. */
  unit?: string | undefined;
  hint?: ReactNode;
  error: string | undefined;
  required?: boolean | undefined;
  placeholder?: string | undefined;
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(id, { 'aria-describedby': note, ...described }) => (
        <div className="number-field">
          <input
            id={id}
            {...described}
            aria-describedby={[unit === undefined ? '' : `${id}-unit`, note ?? ''].join(' ').trim() || undefined}
            type="number"
            inputMode={isDecimal ? 'decimal' : 'numeric'}
            min={min}
            max={max}
            step={isDecimal ? 'any' : 1}
            required={required}
            placeholder={placeholder}
            value={value}
            onChange={(event) => onChange(event.target.value)}
          />
          {unit === undefined ? null : <span id={`${id}-unit`}>{unit}</span>}
        </div>
      )}
    </Field>
  );
}
