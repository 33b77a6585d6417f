import type { ReactNode } from 'react';
import { Button } from '../../ui/button.tsx';
import { Copy } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';

/** Shows a secret once. */
export function ShownOnce({
  title,
  secret,
  onClose,
  children,
}: {
  title: string;
  secret: string;
  onClose: () => void;
  /** What the secret is for. */
  children?: ReactNode;
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p className="notice">Copy it now. It is not shown again.</p>
      <div className="with-button">
        <input readOnly aria-label={title} className="code" value={secret} onFocus={(event) => event.target.select()} />
        <Copy text={secret} />
      </div>
      {children}
      <div className="form-actions">
        <Button kind="primary" onClick={onClose}>
          I have copied it
        </Button>
      </div>
    </Dialog>
  );
}
