import { after } from 'node:test';

type Closable = { close(): Promise<void> };

/** What the test files of this process share, by settings. Undefined while every file has its own. */
let shared: Map<string, Closable> | undefined;

/**
 * From now on, the test files of this process share what is slow to start: parser processes and the browser, which
 * take more processor time than most tests. Both end after the last test.
 */
export function shareAmongFiles(): void {
  const opened = new Map<string, Closable>();
  shared = opened;
  after(async () => {
    for (const each of opened.values()) await each.close();
  });
}

/**
 * Returns what an earlier file opened under this key, or opens it. Undefined if every file opens and closes its own.
 */
export function findShared<T extends Closable>(key: string, open: () => T): T | undefined {
  if (shared === undefined) return undefined;
  const found = (shared.get(key) as T | undefined) ?? open();
  shared.set(key, found);
  return found;
}
