import * as Toast from '@radix-ui/react-toast';
import { useSyncExternalStore } from 'react';
import { IconButton } from './button.tsx';
import { X } from './icons.ts';
import './toast.css';

type Shown = { id: number; text: string; tone: 'good' | 'bad' };

let toasts: Shown[] = [];
let numbers = 0;
const listeners = new Set<() => void>();
const shownMs = 5_000;

/** Shows a confirmation for a few seconds. */
export function toast(text: string, tone: Shown['tone'] = 'good'): void {
  numbers += 1;
  change([...toasts, { id: numbers, text, tone }].slice(-3));
}

function change(next: Shown[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <Toast.Provider duration={shownMs} label="Notification">
      {shown.map(({ id, text, tone }) => (
        <Toast.Root
          key={id}
          className={`toast ${tone}`}
          onOpenChange={(open) => open || change(toasts.filter((one) => one.id !== id))}
        >
          <Toast.Description>{text}</Toast.Description>
          <Toast.Close asChild>
            <IconButton label="Dismiss" className="small">
              <X size={14} aria-hidden="true" />
            </IconButton>
          </Toast.Close>
        </Toast.Root>
      ))}
      <Toast.Viewport className="toasts" />
    </Toast.Provider>
  );
}
