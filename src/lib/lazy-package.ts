import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * Loads a package when its first caller needs it, so that an idle server holds none of the code and starts sooner.
 * Pass `typeof import('name')` as the type, so that the package stays type-checked.
 */
export function lazyPackage<T>(name: string): () => T {
  let loaded: T | undefined;
  return () => {
    loaded ??= require(name) as T;
    return loaded;
  };
}
