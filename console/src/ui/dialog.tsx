import { type FormEvent, type ReactNode, useLayoutEffect, useRef } from 'react';
import type { ApiError } from '../api/client.ts';
import { Button, ErrorNotice } from './basics.tsx';

/** A modal dialog: the browser's own, which keeps the focus inside and closes by Escape. */
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
  // Before the element goes: only then does the browser give the focus back to where it was.
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

/** A form with its buttons: what the API refuses is shown above them. */
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

/** Asks before something that cannot be taken back. */
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
