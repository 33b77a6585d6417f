import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const projectRoot = fileURLToPath(new URL('../../', import.meta.url));

/** A source file: its path relative to the project's root, and its text. */
export type Source = { name: string; text: string };

/** Every TypeScript file below these directories of the project. */
export function readSources(...directories: string[]): Source[] {
  return directories.flatMap((directory) =>
    readdirSync(join(projectRoot, directory), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.tsx?$/.test(name) && !name.includes('node_modules') && !name.startsWith('output/'))
      .sort()
      .map((name) => join(directory, name))
      .map((name) => ({ name, text: readProjectFile(name) })),
  );
}

export function namesOf(sources: Source[]): string[] {
  return sources.map(({ name }) => name);
}

export function readProjectFile(path: string): string {
  return readFileSync(join(projectRoot, path), 'utf8');
}
