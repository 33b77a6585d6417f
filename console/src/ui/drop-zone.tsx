import { type DragEvent, type ReactNode, useRef, useState } from 'react';
import { Button } from './button.tsx';
import './drop-zone.css';

/** An area to drop files on, with a button that does the same for the keyboard. */
export function DropZone({
  label,
  button = 'Choose files',
  kind = 'primary',
  onFiles,
  children,
}: {
  label: string;
  button?: string;
  kind?: 'primary' | 'plain';
  onFiles: (files: File[]) => void;
  children: ReactNode;
}) {
  const picker = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  function drop(event: DragEvent) {
    event.preventDefault();
    setOver(false);
    onFiles([...event.dataTransfer.files]);
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button inside does the same for keyboards
    <div
      className={over ? 'drop over' : 'drop'}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <div>{children}</div>
      <Button kind={kind} onClick={() => picker.current?.click()}>
        {button}
      </Button>
      <input
        ref={picker}
        type="file"
        multiple
        hidden
        aria-label={label}
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = '';
        }}
      />
    </div>
  );
}
