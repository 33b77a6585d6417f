import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { projectRoot } from './source.ts';

/** Writes a program for Node's test runner that runs these test files in one process. */
export function writeBatch(program: string, files: readonly string[]): void {
  const url = pathToFileURL(join(projectRoot, 'test/support/batch.ts'));
  for (const file of files) url.searchParams.append('file', file);
  writeFileSync(program, `import '${url}';\n`);
}

/** The same for one file, whose process is otherwise as if it ran by itself. */
export function writeSingle(program: string, file: string): void {
  const urlOf = (path: string) => pathToFileURL(resolve(projectRoot, path)).href;
  const lines = [
    `import '${urlOf('test/support/own-modules.ts')}';`,
    `import { whileFollowed } from '${urlOf('test/support/test-hook.ts')}';`,
    `await whileFollowed(() => import('${urlOf(file)}'));`,
    `await import('${urlOf('test/support/end-watchdog.ts')}');`,
  ];
  writeFileSync(program, `${lines.join('\n')}\n`);
}
