import { registerHooks } from 'node:module';

/*
 * Loads our own modules without a look at the file system for each import: their names are complete, and all of them are
 * TypeScript modules. Node otherwise checks the file, its links and every `package.json` above it, which takes a quarter
 * of what it takes to load a server. Packages are found as usual.
 */
registerHooks({
  resolve(specifier, context, next) {
    if (!specifier.startsWith('.') || !specifier.endsWith('.ts')) return next(specifier, context);
    return { url: new URL(specifier, context.parentURL).href, format: 'module-typescript', shortCircuit: true };
  },
});
