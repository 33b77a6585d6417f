import { ago } from './format.ts';

/** A relative time, with the exact moment on hover. */
export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span className="faint">–</span>;
  const date = new Date(at);
  const exact = date.toLocaleString(undefined, { dateStyle: 'full', timeStyle: 'long' });
  return (
    <time dateTime={at} title={exact}>
      {ago(date)}
    </time>
  );
}
