import { useState } from 'react';
import { Button } from './button.tsx';
import { Confirm } from './dialog.tsx';

/** An action on the selected rows of a table. With `question`, it asks for confirmation. */
export function BulkButton({
  label,
  disabled = false,
  danger = false,
  question,
  onRun,
}: {
  label: string;
  disabled?: boolean;
  danger?: boolean;
  /** What the confirmation says about the consequences. */
  question?: string;
  onRun: () => Promise<void>;
}) {
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  async function run() {
    setBusy(true);
    await onRun();
    setBusy(false);
  }
  return (
    <>
      <Button
        kind={danger ? 'danger' : 'plain'}
        busy={busy}
        disabled={disabled}
        onClick={() => (question === undefined ? void run() : setAsking(true))}
      >
        {label}
      </Button>
      {asking ? (
        <Confirm
          title={`${label}?`}
          action={label}
          busy={busy}
          error={undefined}
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            await run();
            setAsking(false);
          }}
        >
          {question}
        </Confirm>
      ) : null}
    </>
  );
}
