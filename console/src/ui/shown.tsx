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

export function Skeleton() {
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      <span />
      <span />
      <span />
    </div>
  );
}
