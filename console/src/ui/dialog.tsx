import { type FormEvent, type ReactNode, useLayoutEffect, useRef } from 'react';
import type { ApiError } from '../api/client.ts';
import { Button, ErrorNotice } from './basics.tsx';

/** A modal dialog: the browser's own, which traps the focus and closes on Escape. */
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
  const dialog = useRef<HTMLDialogElement>(null);
  // Before the element is removed: only then does the browser restore the focus.
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className={wide ? 'wide' : ''}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header>
        <h2>{title}</h2>
        <Button kind="quiet" aria-label="Close" onClick={onClose}>
          ✕
        </Button>
      </header>
      {children}
    </dialog>
  );
}

/** A form with its buttons, and the API's error above them. */
export function Form({
  onSubmit,
  onCancel,
  submit,
  busy,
  error,
  danger = false,
  children,
}: {
  onSubmit: () => void;
  onCancel?: (() => void) | undefined;
  submit: string;
  busy: boolean;
  error: ApiError | undefined;
  danger?: boolean;
  children: ReactNode;
}) {
  function send(event: FormEvent) {
    event.preventDefault();
    onSubmit();
  }
  return (
    <form onSubmit={send} noValidate={false}>
      {children}
      <ErrorNotice error={error} />
      <div className="form-actions">
        {onCancel ? <Button onClick={onCancel}>Cancel</Button> : null}
        <Button type="submit" kind={danger ? 'danger' : 'primary'} busy={busy}>
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
        <p>{children}</p>
      </Form>
    </Dialog>
  );
}
