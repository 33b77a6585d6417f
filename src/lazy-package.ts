import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/**
 * Loads a package when its first caller needs it: a server that is idle holds none of the code, and starts sooner.
 * `typeof import('name')` as the type keeps it checked.
 */
export function lazyPackage<T>(name: string): () => T {
  let loaded: T | undefined;
  return () => {
    loaded ??= require(name) as T;
    return loaded;
  };
}
