import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The path of a file of this program that a separate process or thread runs. The build rewrites imports but not such
 * paths, so this uses the extension of the caller's file, `.js` or `.ts`.
 * @param from the caller's `import.meta.url`
 */
export function programFile(path: string, from: string): string {
  return fileURLToPath(new URL(`${path}${extname(from)}`, from));
}
