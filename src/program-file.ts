import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The path of a file of this program, for a process or thread of its own. Imports are rewritten when the program is
 * compiled; this names `.js` or `.ts` as the caller's own file does.
 * @param from the caller's `import.meta.url`.
 */
export function programFile(path: string, from: string): string {
  return fileURLToPath(new URL(`${path}${extname(from)}`, from));
}
