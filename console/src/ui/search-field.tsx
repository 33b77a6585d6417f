import { useEffect, useState } from 'react';
import { useDelayed } from './use-delayed.ts';

/** A search that waits for a pause in typing. */
export function SearchField({
  label,
  placeholder = 'Search',
  value,
  onChange,
}: {
  label: string;
  placeholder?: string;
  value: string;
  onChange: (value: string) => void;
}) {
  const [text, setText] = useState(value);
  const settled = useDelayed(text);
  useEffect(() => setText(value), [value]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a pause in typing changes the value
  useEffect(() => {
    if (settled !== value && settled === text) onChange(settled);
  }, [settled]);
  return (
    <input
      type="search"
      className="search"
      aria-label={label}
      placeholder={placeholder}
      value={text}
      onChange={(event) => setText(event.target.value)}
    />
  );
}
