import { useEffect, useState } from 'react';

const typingMs = 200;

/** The value once it has rested, for searches while somebody types. */
export function useDelayed<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), typingMs);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
