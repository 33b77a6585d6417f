import { useEffect, useState } from 'react';

export type Theme = 'auto' | 'light' | 'dark';
const storageKey = 'quarry.theme';

/** Light, dark, or as the system has it; remembered in this browser. */
export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(() => (localStorage.getItem(storageKey) as Theme | null) ?? 'auto');
  useEffect(() => {
    localStorage.setItem(storageKey, theme);
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
  return [theme, setTheme];
}
