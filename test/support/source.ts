import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const projectRoot = fileURLToPath(new URL('../../', import.meta.url));

/** The TypeScript files below a directory of the project, as absolute paths. */
export function sourceFiles(directory: string): string[] {
  const from = join(projectRoot, directory);
  if (!existsSync(from)) return [];
  return readdirSync(from, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .sort()
    .map((name) => join(from, name));
}

export function readText(file: string): string {
  return readFileSync(file, 'utf8');
}

export function readProjectFile(path: string): string {
  return readText(join(projectRoot, path));
}
