import { useCallback } from 'react';
import { useSearchParams } from 'wouter';

/**
 * Keeps a page's filters, page number and tab in its address, so that reload, back and links preserve them. A value
 * equal to its default is left out. Any change other than of the page number returns to the first page.
 */
export function useFilters<F extends Record<string, string>>(
  defaults: F,
): [values: F, change: (next: Partial<F>) => void] {
  const [search, setSearch] = useSearchParams();
  const names = Object.keys(defaults);
  const values = Object.fromEntries(names.map((name) => [name, search.get(name) ?? defaults[name]])) as F;
  const known = JSON.stringify(defaults);
  const change = useCallback(
    (next: Partial<F>) => {
      const fallback = JSON.parse(known) as F;
      setSearch(
        (now) => {
          const changed = new URLSearchParams(now);
          if (!('page' in next)) changed.delete('page');
          for (const [name, value] of Object.entries(next))
            if (value === undefined || value === fallback[name]) changed.delete(name);
            else changed.set(name, value);
          return changed;
        },
        { replace: true },
      );
    },
    [known, setSearch],
  );
  return [values, change];
}

/** The page number in an address; 1 for anything else. */
export function pageNumber(text: string): number {
  return /^[1-9]\d{0,8}$/.test(text) ? Number(text) : 1;
}
