import type { Database } from '../db/database.ts';
import * as store from './store.ts';

const placesMax = 200_000;

/**
 * Where each app is, cached without a time limit: a change is announced, and a lost connection to the directory
 * clears the cache when it is back. A process with an old place is refused by the fence in the cell's database.
 */
export class Directory {
  readonly #db: Database;
  readonly #places = new Map<string, store.Place>();
  readonly #looking = new Map<string, Promise<store.Place | undefined>>();
  /** Counts invalidations, so that a look-up that started before one is not cached. */
  #version = 0;
  /** Called when the place of this app, or of any app, may have changed. */
  readonly #onChange: (appId: string | undefined) => void;

  constructor(db: Database, onChange: (appId: string | undefined) => void = () => {}) {
    this.#db = db;
    this.#onChange = onChange;
  }

  /** The cached place of an app. */
  peek(appId: string): store.Place | undefined {
    return this.#places.get(appId);
  }

  /** The place of an app; undefined if no cell has it. Concurrent look-ups of one app share a query. */
  find(appId: string): Promise<store.Place | undefined> {
    const known = this.#places.get(appId);
    if (known !== undefined) return Promise.resolve(known);
    const looking = this.#looking.get(appId);
    if (looking !== undefined) return looking;
    const found = this.#load(appId).finally(() => this.#looking.delete(appId));
    this.#looking.set(appId, found);
    return found;
  }

  /** Drops the place of this app, or of all apps. */
  forget(appId?: string): void {
    this.#version += 1;
    this.#looking.clear();
    if (appId === undefined || appId === '') this.#places.clear();
    else this.#places.delete(appId);
  }

  /** Drops places when they change. `direct` is a connection without a pooler. */
  async listen(direct: Database): Promise<void> {
    const changed = (appId?: string) => {
      this.forget(appId);
      this.#onChange(appId === '' ? undefined : appId);
    };
    await direct.listen(store.placesChannel, changed, () => changed());
  }

  async #load(appId: string): Promise<store.Place | undefined> {
    const version = this.#version;
    const place = await store.findPlace(this.#db, appId);
    if (place === undefined || version !== this.#version) return place;
    if (this.#places.size >= placesMax) this.#places.clear();
    this.#places.set(appId, place);
    return place;
  }
}
