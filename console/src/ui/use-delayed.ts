import { useEffect, useState } from 'react';

const typingMs = 200;

/** Debounces a value, for searches while typing. */
export function useDelayed<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), typingMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
