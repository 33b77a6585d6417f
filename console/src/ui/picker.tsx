import * as Popover from '@radix-ui/react-popover';
import { Command } from 'cmdk';
import { type FormEvent, useState } from 'react';
import { ChevronsUpDown } from './icons.ts';
import './picker.css';
import { useLoad } from './query.ts';
import { useDelayed } from './use-delayed.ts';

type Choice = { id: string; name: string; detail?: string };

/** A button that opens a list to choose one thing from by its name. */
export function Picker({
  label,
  id,
  text,
  isChosen,
  placeholder,
  idPattern,
  findKey,
  find,
  onChoose,
}: {
  label: string;
  /** The id of the control, for the label of a field. */
  id?: string;
  /** What is chosen, or what stands for no choice. */
  text: string;
  isChosen: boolean;
  placeholder: string;
  /** The ids that can be pasted. */
  idPattern: RegExp;
  /** Identifies what `find` finds. */
  findKey: string;
  find: (search: string) => Promise<Choice[]>;
  onChoose: (id: string, name: string) => void;
}) {
  const [open, setOpen] = useState(false);
  const [typed, setTyped] = useState('');
  const search = useDelayed(typed.trim());
  const found = useLoad(['choices', findKey, search], () => find(search), { enabled: open, keep: true });
  function choose(next: string, name: string) {
    onChoose(next, name);
    setOpen(false);
    setTyped('');
  }
  return (
    <Popover.Root open={open} onOpenChange={setOpen}>
      <Popover.Trigger asChild>
        <button type="button" className="picker-button" id={id} aria-label={`${label}: ${text}`}>
          <span className={isChosen ? 'cut' : 'cut faint'}>{text}</span>
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
            <Command.Input placeholder={placeholder} value={typed} onValueChange={setTyped} />
            <Command.List label={`${label}: choices`}>
              {found.data?.length === 0 ? <Command.Empty>No matches.</Command.Empty> : null}
              {found.data?.map((one) => (
                <Command.Item key={one.id} value={one.id} onSelect={() => choose(one.id, one.name)}>
                  <span className="cut">{one.name}</span>
                  <span className="faint cut">{one.detail}</span>
                </Command.Item>
              ))}
              {idPattern.test(search) && found.data?.every((one) => one.id !== search) ? (
                <Command.Item value={search} onSelect={() => choose(search, search)}>
                  <code className="cut">{search}</code>
                </Command.Item>
              ) : null}
            </Command.List>
          </Command>
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
