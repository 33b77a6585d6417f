import { useEffect, useSyncExternalStore } from 'react';

let title: string | undefined;
const listeners = new Set<() => void>();

function change(next: string | undefined): void {
  title = next;
  for (const listener of listeners) listener();
}

/** Names the page in the breadcrumbs and in the browser's tab while it is shown. */
export function usePageTitle(name: string | undefined): void {
  useEffect(() => {
    if (name === undefined) return;
    change(name);
    return () => change(undefined);
  }, [name]);
}

/** The name of the current page, if it has told one. */
export function useShownTitle(): string | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => title,
  );
}
