import { useEffect, useState } from 'react';

export type Theme = 'auto' | 'light' | 'dark';
const storageKey = 'quarry.theme';

/** Light, dark or the system's theme; stored in this browser. */
export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(readStoredTheme);
  useEffect(() => {
    localStorage.setItem(storageKey, theme);
    apply(theme);
  }, [theme]);
  return [theme, setTheme];
}

function readStoredTheme(): Theme {
  const theme = localStorage.getItem(storageKey);
  return theme === 'light' || theme === 'dark' ? theme : 'auto';
}

function apply(theme: Theme): void {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

// Applied before the first paint, to avoid a flash.
apply(readStoredTheme());
