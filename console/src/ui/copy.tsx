import { useState } from 'react';
import { Button, IconButton } from './button.tsx';
import { Check, Copy as CopyIcon } from './icons.ts';
import './copy.css';

/** Copies a text and confirms it. */
export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [copied, copy] = useCopy(text);
  return (
    <Button kind="quiet" onClick={copy} aria-live="polite">
      {copied ? 'Copied' : label}
    </Button>
  );
}

/** An id that is copied with one click. */
export function Id({ id, label }: { id: string; label?: string }) {
  const [copied, copy] = useCopy(id);
  return (
    <span className="id">
      <code className="cut" title={id}>
        {label ?? id}
      </code>
      <IconButton label={copied ? 'Copied' : `Copy ${id}`} className="small" onClick={copy}>
        {copied ? <Check size={14} aria-hidden="true" /> : <CopyIcon size={14} aria-hidden="true" />}
      </IconButton>
    </span>
  );
}

function useCopy(text: string): [copied: boolean, copy: () => Promise<void>] {
  const [copied, setCopied] = useState(false);
  async function copy() {
    // Without https, the clipboard API is not available, but a selection can still be copied.
    if (navigator.clipboard) await navigator.clipboard.writeText(text);
    else copySelected(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  }
  return [copied, copy];
}

function copySelected(text: string): void {
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}
