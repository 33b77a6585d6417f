import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// The compile cache is next to the packages: anyone who can write there could change the packages as well. If the
// directory is not writable, startup is slightly slower.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/quarry', import.meta.url)));
const { runCommand } = await import('./cli/run.ts');
process.exitCode = await runCommand(process.argv.slice(2));
