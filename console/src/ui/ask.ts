import { useSyncExternalStore } from 'react';

type Question = { title: string; text: string; action: string; proceed: () => void };

let question: Question | undefined;
const listeners = new Set<() => void>();

/** Asks the user in a dialog of the console, and proceeds after a yes. */
export function ask(next: Question): void {
  change(next);
}

export function closeQuestion(): void {
  change(undefined);
}

function change(next: Question | undefined): void {
  question = next;
  for (const listener of listeners) listener();
}

export function useQuestion(): Question | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => question,
  );
}
