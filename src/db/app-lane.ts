import { AsyncLocalStorage } from 'node:async_hooks';

const lanes = new AsyncLocalStorage<string>();

/** Runs work whose statements wait for a connection in the lane of this app. */
export function runForApp<T>(app: string, work: () => T): T {
  return lanes.run(app, work);
}

/** The app that the current work belongs to; '' for work of no app. */
export function currentLane(): string {
  return lanes.getStore() ?? '';
}
