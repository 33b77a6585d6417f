// Makes `npx quarry` find the command where npm looks first; `npm ci` runs it. Without the link npm would install this
// project anew into its cache at the first call. Plain JavaScript, because an older Node may run it.
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const commands = join(dirname(fileURLToPath(import.meta.url)), '..', 'node_modules', '.bin');
mkdirSync(commands, { recursive: true });
rmSync(join(commands, 'quarry'), { force: true });
symlinkSync(join('..', '..', 'bin', 'quarry.js'), join(commands, 'quarry'));
