import { type ButtonHTMLAttributes, type ReactNode, useId, useState } from 'react';
import type { ApiError } from '../api/client.ts';
import type { Loaded } from './use-load.ts';

/** A button; `busy` prevents a second click. */
export function Button({
  kind = 'plain',
  busy = false,
  children,
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { kind?: 'primary' | 'plain' | 'quiet' | 'danger'; busy?: boolean }) {
  return (
    <button
      type="button"
      {...rest}
      className={`button ${kind} ${rest.className ?? ''}`}
      disabled={rest.disabled || busy}
    >
      {busy ? <span className="spinner" aria-hidden="true" /> : null}
      {children}
    </button>
  );
}

/** An error, with advice. */
export function ErrorNotice({ error, onRetry }: { error: ApiError | undefined; onRetry?: (() => void) | undefined }) {
  if (!error) return null;
  const [first] = error.fields;
  const told = first !== undefined && error.message.includes(first.message);
  return (
    <div className="notice error" role="alert">
      <p>
        <strong>{titleOf(error)}</strong> {error.message}
      </p>
      {error.fields.length > (told ? 1 : 0) ? (
        <ul>
          {error.fields.map(({ field, message }) => (
            <li key={`${field} ${message}`}>
              <code>{field}</code> {message}
            </li>
          ))}
        </ul>
      ) : null}
      {error.requestId !== undefined && error.status >= 500 ? (
        <p className="faint">
          Request id: <code>{error.requestId}</code>
        </p>
      ) : null}
      {onRetry ? (
        <Button kind="plain" onClick={onRetry}>
          Try again
        </Button>
      ) : null}
    </div>
  );
}

function titleOf({ status, code }: ApiError): string {
  if (code === 'rate_limited') return 'Too many requests.';
  if (code === 'quota_exceeded') return 'The limit was reached.';
  if (status === 0) return 'The request failed.';
  if (status === 403) return 'Not allowed.';
  if (status === 404) return 'Not found.';
  if (status === 422) return 'Please correct this.';
  if (status >= 500) return 'The server reported an error.';
  return 'The request failed.';
}

/** The loaded data; before that a placeholder, or the error with a button to retry. */
export function Shown<T>({ loaded, children }: { loaded: Loaded<T>; children: (data: T) => ReactNode }) {
  const { data, error, loading, reload } = loaded;
  return (
    <>
      <ErrorNotice error={error} onRetry={reload} />
      {loading ? <Skeleton /> : null}
      {data === undefined ? null : children(data)}
    </>
  );
}

function Skeleton() {
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      <span />
      <span />
      <span />
    </div>
  );
}

/** An empty state: explains what appears here and the first step. */
export function Empty({ title, children, action }: { title: string; children: ReactNode; action?: ReactNode }) {
  return (
    <div className="empty">
      <svg viewBox="0 0 48 48" aria-hidden="true">
        <path d="M8 36h32M13 28h22M18 20h12M22 12h4" />
      </svg>
      <h2>{title}</h2>
      <p>{children}</p>
      {action}
    </div>
  );
}

/** A heading, a one-line description and the actions of a page. */
export function PageHead({ title, lead, children }: { title: ReactNode; lead?: ReactNode; children?: ReactNode }) {
  return (
    <header className="page-head">
      <div>
        <h1>{title}</h1>
        {lead === undefined ? null : <p className="lead">{lead}</p>}
      </div>
      {children === undefined ? null : <div className="actions">{children}</div>}
    </header>
  );
}

const tones: Record<string, string> = {
  ...{ running: 'active', pending: 'waiting', awaiting_callback: 'waiting', waiting: 'waiting', draft: 'quiet' },
  ...{ done: 'good', completed: 'good', succeeded: 'good', active: 'good', shared: 'good' },
  ...{ failed: 'bad', cancelled: 'quiet', paused: 'quiet', revoked: 'quiet' },
};

/** A state as a coloured label. */
export function State({ value, label }: { value: string; label?: string }) {
  return <span className={`state ${tones[value] ?? 'quiet'}`}>{label ?? value.replaceAll('_', ' ')}</span>;
}

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
  children: (id: string, described: { 'aria-describedby'?: string; 'aria-invalid'?: boolean }) => ReactNode;
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
        <p id={`${id}-note`} className={error === undefined ? 'hint' : 'hint wrong'}>
          {error ?? hint}
        </p>
      )}
    </div>
  );
}

type Column = string | { name: string; look: 'number' | 'hidden' };

/** A table. On a phone, each row becomes a card. */
export function Table({ columns, children }: { columns: Column[]; children: ReactNode }) {
  return (
    <table className="list">
      <thead>
        <tr>
          {columns.map((column) => {
            const { name, look } = typeof column === 'string' ? { name: column, look: undefined } : column;
            return (
              <th key={name} scope="col" className={look === 'number' ? 'number' : undefined}>
                {look === 'hidden' ? <span className="hidden">{name}</span> : name}
              </th>
            );
          })}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  );
}

/** A field for JSON and other code. */
export function CodeField({
  label,
  hint,
  rows,
  required = false,
  value,
  onChange,
}: {
  label: string;
  hint: ReactNode;
  rows: number;
  required?: boolean;
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <Field label={label} hint={hint}>
      {(id, described) => (
        <textarea
          id={id}
          {...described}
          className="code"
          rows={rows}
          required={required}
          spellCheck={false}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Field>
  );
}

/** The API's error for one member of the body. */
export function fieldError(error: ApiError | undefined, ...names: string[]): string | undefined {
  return error?.fields.find(({ field }) => names.includes(field))?.message;
}

/** Copies a text and confirms it. */
export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [copied, setCopied] = useState(false);
  async function copy() {
    // Without https, the clipboard API is not available, but a selection can be copied.
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else copySelected(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  }
  return (
    <Button kind="quiet" onClick={copy} aria-live="polite">
      {copied ? 'Copied' : label}
    </Button>
  );
}

function copySelected(text: string): void {
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

/** Pagination. */
export function Pager({
  page,
  onPage,
}: {
  page: { page: number; total_pages: number; total_entries: number; has_next: boolean; has_prev: boolean };
  onPage: (page: number) => void;
}) {
  if (page.total_pages <= 1) return <p className="pager faint">{count(page.total_entries, 'entry', 'entries')}</p>;
  return (
    <nav className="pager" aria-label="Pages">
      <Button kind="plain" disabled={!page.has_prev} onClick={() => onPage(page.page - 1)}>
        Newer
      </Button>
      <span className="faint">
        Page {page.page} of {page.total_pages} · {count(page.total_entries, 'entry', 'entries')}
      </span>
      <Button kind="plain" disabled={!page.has_next} onClick={() => onPage(page.page + 1)}>
        Older
      </Button>
    </nav>
  );
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

/** Formatted JSON. */
export function Json({ value }: { value: unknown }) {
  return <Code text={JSON.stringify(value, null, 2)} />;
}

/** Preformatted text. */
export function Code({ text }: { text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <pre className="code" tabIndex={0}>
      {text}
    </pre>
  );
}

/** A progress bar. Without `part`, it is indeterminate. */
export function Progress({ part, label }: { part?: number | undefined; label: string }) {
  return <progress aria-label={label} {...(part === undefined ? {} : { value: part, max: 1 })} />;
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`;
}

export function bytes(size: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let value = size;
  let unit = 0;
  while (value >= 1_000 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** A relative time, with the exact time as a tooltip. */
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span className="faint">–</span>;
  const date = new Date(at);
  return (
    <time dateTime={at} title={date.toLocaleString()}>
      {ago(date)}
    </time>
  );
}

function ago(date: Date): string {
  const seconds = Math.round((Date.now() - date.getTime()) / 1_000);
  if (Math.abs(seconds) < 45) return 'just now';
  for (const [unit, size] of [
    ['day', 86_400],
    ['hour', 3_600],
    ['minute', 60],
  ] as const)
    if (Math.abs(seconds) >= size || unit === 'minute') {
      const number = Math.max(1, Math.round(Math.abs(seconds) / size));
      if (unit === 'day' && number > 6) return date.toLocaleDateString(undefined, { dateStyle: 'medium' });
      return new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(seconds > 0 ? -number : number, unit);
    }
  return '';
}
