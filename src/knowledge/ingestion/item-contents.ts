import type { Db } from '../../db/database.ts';
import { type ItemRow, readItemContents } from './store.ts';

/** The contents that one statement reads: at most this many, and no more after these bytes. */
const countMax = 16;
const bytesMax = 256 * 1024;

/** Reads the contents of items, small ones in one statement with those after them. Each is read once. */
export class ItemContents {
  readonly #db: Db;
  readonly #items: readonly ItemRow[];
  readonly #read = new Map<ItemRow, Promise<Buffer>>();

  /** @param items in the order in which they will be read */
  constructor(db: Db, items: readonly ItemRow[]) {
    this.#db = db;
    this.#items = items;
  }

  /** The content of one of the items, which is not a file. */
  read(item: ItemRow): Promise<Buffer> {
    if (!this.#read.has(item)) this.#readFrom(item);
    const content = this.#read.get(item) ?? Promise.resolve(Buffer.alloc(0));
    this.#read.delete(item);
    return content;
  }

  #readFrom(first: ItemRow): void {
    const group: ItemRow[] = [];
    let bytes = 0;
    for (let at = this.#items.indexOf(first); group.length < countMax && bytes < bytesMax; at++) {
      const item = this.#items[at];
      if (item === undefined) break;
      if (item.fileId !== null) continue;
      group.push(item);
      bytes += item.size ?? 0;
    }
    const rows = readItemContents(this.#db, first.appId, group).then(
      (found) => new Map(found.map((row) => [`${row.ingestionId}/${row.ordinal}`, row.content])),
    );
    for (const item of group) {
      const content = rows.then((found) => found.get(`${item.ingestionId}/${item.ordinal}`) ?? Buffer.alloc(0));
      // A rejection is handled once it is awaited, and must not count as unhandled before.
      content.catch(() => {});
      this.#read.set(item, content);
    }
  }
}
