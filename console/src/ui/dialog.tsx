import * as RadixDialog from '@radix-ui/react-dialog';
import { createContext, type FormEvent, type ReactNode, useContext, useEffect, useRef, useState } from 'react';
import type { ApiError } from '../api/client.ts';
import { Button } from './button.tsx';
import { X } from './icons.ts';
import './dialog.css';
import { ErrorNotice } from './notice.tsx';
import { useUnsaved } from './unsaved.ts';

/** Closes the surrounding dialog. Asks first if something was typed. */
const CloseContext = createContext<(() => void) | undefined>(undefined);

/**
 * A modal dialog. It traps the focus, which starts in the first field, and restores it on close. Typed text is never
 * lost silently: Escape, a click outside and Cancel ask first.
 */
export function Dialog({
  title,
  onClose,
  children,
  wide = false,
}: {
  title: string;
  onClose: () => void;
  children: ReactNode;
  wide?: boolean;
}) {
  const typed = useRef(false);
  const [isTyped, setTyped] = useState(false);
  const [asking, setAsking] = useState(false);
  // Radix knows no trigger, because the dialog is mounted only while it is open.
  const [opener] = useState(() => document.activeElement);
  useUnsaved(isTyped);
  const requestClose = () => {
    if (typed.current) setAsking(true);
    else onClose();
  };
  const noteTyping = (event: FormEvent) => {
    const { type, dataset } = event.target as HTMLInputElement;
    // A typed confirmation is nothing to keep.
    if ('confirms' in dataset) return;
    if (typed.current || type === 'checkbox' || type === 'radio' || type === 'search') return;
    typed.current = true;
    setTyped(true);
  };
  return (
    <RadixDialog.Root open onOpenChange={(open) => open || requestClose()}>
      <RadixDialog.Portal>
        <RadixDialog.Overlay className="dialog-overlay" />
        <RadixDialog.Content
          className={wide ? 'dialog wide' : 'dialog'}
          aria-describedby={undefined}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
          }}
          onInput={noteTyping}
        >
          <RadixDialog.Title asChild>
            <h2>{title}</h2>
          </RadixDialog.Title>
          <CloseContext value={requestClose}>
            <div className="dialog-body">{children}</div>
          </CloseContext>
          {asking ? (
            <Discard
              onKeep={() => setAsking(false)}
              onDiscard={() => {
                typed.current = false;
                onClose();
              }}
            />
          ) : null}
          {/* The last element, so that the focus starts in the first field. A tooltip would take the first Escape. */}
          <button type="button" aria-label="Close" className="icon-button dialog-close" onClick={requestClose}>
            <X size={18} aria-hidden="true" />
          </button>
        </RadixDialog.Content>
      </RadixDialog.Portal>
    </RadixDialog.Root>
  );
}

function Discard({ onKeep, onDiscard }: { onKeep: () => void; onDiscard: () => void }) {
  const keep = useRef<HTMLDivElement>(null);
  useEffect(() => keep.current?.querySelector('button')?.focus(), []);
  return (
    <div className="notice warning discard" role="alertdialog" aria-label="Discard your changes?" ref={keep}>
      <p>
        <strong>Discard your changes?</strong> It is not saved.
      </p>
      <div className="form-actions">
        <Button onClick={onKeep}>Keep editing</Button>
        <Button kind="danger" onClick={onDiscard}>
          Discard
        </Button>
      </div>
    </div>
  );
}

/** A form with its buttons, and the API's error above them. */
export function Form({
  onSubmit,
  onCancel,
  submit,
  busy,
  error,
  shownFields,
  danger = false,
  quiet = false,
  ready = true,
  children,
}: {
  onSubmit: () => void;
  onCancel?: (() => void) | undefined;
  submit: string;
  busy: boolean;
  error: ApiError | undefined;
  /** Fields whose error is shown next to their control. */
  shownFields?: string[];
  danger?: boolean;
  /** Whether the page has a primary button of its own, or several forms. */
  quiet?: boolean;
  /** Whether the form can be sent. */
  ready?: boolean;
  children: ReactNode;
}) {
  const close = useContext(CloseContext);
  function send(event: FormEvent) {
    event.preventDefault();
    // A form in a dialog must not submit the form of the page that opened it.
    event.stopPropagation();
    onSubmit();
  }
  return (
    <form onSubmit={send} noValidate={false}>
      {children}
      <ErrorNotice error={error} {...(shownFields === undefined ? {} : { shownFields })} />
      <div className="form-actions">
        {onCancel ? <Button onClick={close ?? onCancel}>Cancel</Button> : null}
        <Button type="submit" kind={danger ? 'danger' : quiet ? 'plain' : 'primary'} busy={busy} disabled={!ready}>
          {submit}
        </Button>
      </div>
    </form>
  );
}

/** Asks for confirmation before an action that cannot be undone. */
export function Confirm({
  title,
  children,
  action,
  busy,
  error,
  onConfirm,
  onClose,
}: {
  title: string;
  children: ReactNode;
  action: string;
  busy: boolean;
  error: ApiError | undefined;
  onConfirm: () => void;
  onClose: () => void;
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      <Form danger submit={action} busy={busy} error={error} onSubmit={onConfirm} onCancel={onClose}>
        <div>{children}</div>
      </Form>
    </Dialog>
  );
}
