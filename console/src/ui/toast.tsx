import * as Toast from '@radix-ui/react-toast';
import { useSyncExternalStore } from 'react';
import { Button, IconButton } from './button.tsx';
import { X } from './icons.ts';
import './toast.css';

type Undo = () => Promise<unknown>;
type Shown = { id: number; text: string; tone: 'good' | 'bad'; undo?: Undo | undefined };

let toasts: Shown[] = [];
let numbers = 0;
const listeners = new Set<() => void>();
const shownMs = 5_000;
const undoMs = 12_000;

/** Shows a confirmation for a few seconds, with a button that takes the action back. */
export function toast(text: string, tone: Shown['tone'] = 'good', undo?: Undo): void {
  numbers += 1;
  change([...toasts, { id: numbers, text, tone, undo }].slice(-3));
}

const dismiss = (id: number) => change(toasts.filter((one) => one.id !== id));

async function takeBack(id: number, undo: Undo): Promise<void> {
  dismiss(id);
  await undo().then(
    () => toast('It is back.'),
    (error: unknown) => toast(`It could not be restored: ${error instanceof Error ? error.message : error}`, 'bad'),
  );
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
      {shown.map(({ id, text, tone, undo }) => (
        <Toast.Root
          key={id}
          className={`toast ${tone}`}
          duration={undo === undefined ? shownMs : undoMs}
          onOpenChange={(open) => open || dismiss(id)}
        >
          <Toast.Description>{text}</Toast.Description>
          {undo === undefined ? null : (
            <Toast.Action asChild altText="Undo: restore what was deleted">
              <Button onClick={() => takeBack(id, undo)}>Undo</Button>
            </Toast.Action>
          )}
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
