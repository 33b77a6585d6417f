import { createHash } from 'node:crypto';

type Named = { name: string; generator: string };

/**
 * Whether a theme is kept aside: every second one of each generator, in the order of their hashes. No rule is written
 * for it, and only these are reported.
 */
export function isKeptAside(theme: Named, themes: readonly Named[]): boolean {
  const hash = ({ name }: Named): string => createHash('sha256').update(name).digest('hex');
  const group = themes.filter(({ generator }) => generator === theme.generator).map(hash);
  return group.sort().indexOf(hash(theme)) % 2 === 0;
}
