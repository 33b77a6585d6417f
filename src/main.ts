import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';

// Stripped and compiled sources are kept beside the packages, where whoever may write could change those as well.
// Where nothing can be written, it starts a little slower.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/quarry', import.meta.url)));
const { runCommand } = await import('./cli/program.ts');
process.exitCode = await runCommand(process.argv.slice(2));
