import * as Popover from '@radix-ui/react-popover';
import { Command } from 'cmdk';
import { type FormEvent, useState } from 'react';
import { IconButton } from '../ui/button.tsx';
import { ChevronsUpDown, X } from '../ui/icons.ts';
import { useLoad } from '../ui/query.ts';
import { useDelayed } from '../ui/use-delayed.ts';
import './picker.css';
import { findPrincipals, type PrincipalKind, usePrincipal } from './principals.ts';

/** Chooses a user, agent, team or org by name or e-mail; an id can be pasted. */
export function PrincipalPicker({
  label,
  id,
  kinds,
  value,
  any,
  onChange,
}: {
  label: string;
  /** The id of the control, for the label of a field. */
  id?: string;
  kinds: PrincipalKind[];
  value: string;
  /** The text for no choice. */
  any: string;
  onChange: (value: string) => void;
}) {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState('');
  const search = useDelayed(text.trim());
  const found = useLoad(['principals', kinds.join(), search], () => findPrincipals(kinds, search), {
    enabled: open,
    keep: true,
  });
  const { data: chosen } = usePrincipal(value === '' ? undefined : value);
  function choose(next: string) {
    onChange(next);
    setOpen(false);
    setText('');
  }
  return (
    <div className="picker-control">
      <Popover.Root open={open} onOpenChange={setOpen}>
        <Popover.Trigger asChild>
          <button
            type="button"
            className="picker-button"
            id={id}
            aria-label={`${label}: ${chosen?.name ?? (value || any)}`}
          >
            <span className={value === '' ? 'cut faint' : 'cut'}>{chosen?.name ?? (value === '' ? any : value)}</span>
            <ChevronsUpDown size={15} aria-hidden="true" />
          </button>
        </Popover.Trigger>
        <Popover.Portal>
          <Popover.Content
            className="picker-popover"
            align="start"
            sideOffset={4}
            // Typing a search must not count as unsaved text.
            onInput={(event: FormEvent) => event.stopPropagation()}
          >
            <Command shouldFilter={false} label={label}>
              <Command.Input placeholder="Name, e-mail or id" value={text} onValueChange={setText} />
              <Command.List label={`${label}: choices`}>
                {found.data?.length === 0 ? <Command.Empty>No matches.</Command.Empty> : null}
                {found.data?.map((one) => (
                  <Command.Item key={one.id} value={one.id} onSelect={() => choose(one.id)}>
                    <span className="cut">{one.name}</span>
                    <span className="faint cut">{one.detail ?? (kinds.length > 1 ? one.kind : '')}</span>
                  </Command.Item>
                ))}
                {/^[a-z]{3}_\w{22}$/.test(search) && found.data?.every((one) => one.id !== search) ? (
                  <Command.Item value={search} onSelect={() => choose(search)}>
                    <code className="cut">{search}</code>
                  </Command.Item>
                ) : null}
              </Command.List>
            </Command>
          </Popover.Content>
        </Popover.Portal>
      </Popover.Root>
      {value === '' ? null : (
        <IconButton label={`Clear: ${label}`} onClick={() => onChange('')}>
          <X size={15} aria-hidden="true" />
        </IconButton>
      )}
    </div>
  );
}
