import * as RadixTabs from '@radix-ui/react-tabs';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { afterPaint } from './paint.ts';
import './tabs.css';
import { leave } from './unsaved.ts';

/**
 * Tabs with their panels; the arrow keys move between them. A pressed tab is painted as the chosen one before its panel
 * is drawn, which can take long.
 */
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
  const [pressed, setPressed] = useState<K>();
  const open = useRef(onChange);
  open.current = onChange;
  useEffect(() => {
    if (pressed === undefined) return;
    return afterPaint(() => {
      setPressed(undefined);
      open.current(pressed);
    });
  }, [pressed]);
  return (
    <RadixTabs.Root
      value={pressed ?? value}
      // Focus alone does not open a tab if it has to ask, because it would ask twice.
      activationMode={asks ? 'manual' : 'automatic'}
      onValueChange={(next) => {
        if (asks) leave(() => setPressed(next as K));
        else setPressed(next as K);
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
        <RadixTabs.Content
          key={id}
          value={id}
          className="tab-panel"
          forceMount={id === value ? true : undefined}
          hidden={id !== value}
        >
          {id === value ? panel : null}
        </RadixTabs.Content>
      ))}
    </RadixTabs.Root>
  );
}
