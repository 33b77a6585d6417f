import * as RadixTabs from '@radix-ui/react-tabs';
import type { ReactNode } from 'react';
import './tabs.css';
import { leave } from './unsaved.ts';

/** Tabs with their panels; the arrow keys move between them. */
export function Tabs<K extends string>({
  label,
  value,
  onChange,
  tabs,
  asks = false,
}: {
  label: string;
  value: K;
  onChange: (value: K) => void;
  tabs: { id: K; name: ReactNode; panel: ReactNode }[];
  /** Whether the panels hold text that may be unsaved. Another tab then opens only when it is saved or may be lost. */
  asks?: boolean;
}) {
  return (
    <RadixTabs.Root
      value={value}
      // Focus alone does not open a tab if it has to ask, because it would ask twice.
      activationMode={asks ? 'manual' : 'automatic'}
      onValueChange={(next) => {
        if (asks) leave(() => onChange(next as K));
        else onChange(next as K);
      }}
      className="tabs-root"
    >
      <RadixTabs.List className="tabs" aria-label={label}>
        {tabs.map(({ id, name }) => (
          <RadixTabs.Trigger key={id} value={id}>
            {name}
          </RadixTabs.Trigger>
        ))}
      </RadixTabs.List>
      {tabs.map(({ id, panel }) => (
        <RadixTabs.Content key={id} value={id} className="tab-panel">
          {panel}
        </RadixTabs.Content>
      ))}
    </RadixTabs.Root>
  );
}
