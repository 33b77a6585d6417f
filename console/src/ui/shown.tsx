import type { ReactNode } from 'react';
import { ErrorNotice } from './notice.tsx';
import type { Loaded } from './query.ts';
import './skeleton.css';

/** Shows the loaded data, or before that a placeholder, or an error with a button to retry. */
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

/** Rows as high as those of the table that comes. */
export function Skeleton({ rows = 8 }: { rows?: number }) {
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the rows have nothing else
        <span key={row} />
      ))}
    </div>
  );
}
