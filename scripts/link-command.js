// Makes `npx quarry` find the command, as one of an installed package's; `npm ci` runs it. A `bin` in package.json
// would have npm install this project anew into its cache at the first call, console and all. Plain JavaScript, because
// an older Node may run it.
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const commands = join(dirname(fileURLToPath(import.meta.url)), '..', 'node_modules', '.bin');
mkdirSync(commands, { recursive: true });
rmSync(join(commands, 'quarry'), { force: true });
symlinkSync(join('..', '..', 'bin', 'quarry.js'), join(commands, 'quarry'));
