import { readFileSync } from 'node:fs';

const file = new URL('../package.json', import.meta.url);
const project = JSON.parse(readFileSync(file, 'utf8')) as { version: string; dependencies: Record<string, string> };

/** The release, as package.json names it. */
export const version = project.version;

/** The version of a dependency, which is exact. */
export function dependencyVersion(name: string): string {
  const found = project.dependencies[name];
  if (found === undefined) throw new Error(`package.json has no dependency ${name}.`);
  return found;
}
