import './progress.css';

/** A progress bar. Without `part`, it is indeterminate. */
export function Progress({ part, label }: { part?: number | undefined; label: string }) {
  return <progress aria-label={label} {...(part === undefined ? {} : { value: part, max: 1 })} />;
}
