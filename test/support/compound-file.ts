/** Writes a compound file (version 3) with streams by path: enough for tests to read. */
export function compoundFile(streams: Record<string, Buffer>): Uint8Array {
  const sector = 512;
  const entries: Entry[] = [{ name: 'Root Entry', type: 5, child: -1, right: -1, start: -2, length: 0 }];
  const folders = new Map<string, number>([['', 0]]);
  const bodies: Buffer[] = [];
  let nextSector = 0;
  for (const [path, body] of Object.entries(streams)) {
    const slash = path.lastIndexOf('/');
    const folder = slash < 0 ? '' : path.slice(0, slash);
    addFolder(entries, folders, folder);
    // Streams are padded past the cutoff, so that none needs the small-sector store.
    const padded = Buffer.concat([body, Buffer.alloc(Math.max(0, 4096 - body.byteLength))]);
    const sectors = Math.ceil(padded.byteLength / sector);
    const length =
      path.includes('__substg') || path.includes('__prop') ? padded.byteLength : Math.max(4096, body.byteLength);
    addEntry(entries, folders.get(folder) ?? 0, { name: path.slice(slash + 1), type: 2, start: nextSector, length });
    bodies.push(Buffer.concat([padded, Buffer.alloc(sectors * sector - padded.byteLength)]));
    nextSector += sectors;
  }
  const directory = Buffer.concat(entries.map(writeEntry));
  const directorySectors = Math.ceil(directory.byteLength / sector);
  const fatSectors = Math.ceil(((nextSector + directorySectors) * 4) / (sector - 8)) + 1;
  const fat = Buffer.alloc(fatSectors * sector, 0xff);
  let at = 0;
  const chain = (count: number): void => {
    for (let index = 0; index < count; index++, at++)
      fat.writeUInt32LE(index === count - 1 ? 0xfffffffe : at + 1, at * 4);
  };
  for (const body of bodies) chain(body.byteLength / sector);
  chain(directorySectors);
  for (let index = 0; index < fatSectors; index++, at++) fat.writeUInt32LE(0xfffffffd, at * 4);
  const header = Buffer.alloc(sector, 0xff);
  Buffer.from('d0cf11e0a1b11ae1', 'hex').copy(header);
  header.fill(0, 8, 76);
  header.writeUInt16LE(0x3e, 24);
  header.writeUInt16LE(3, 26);
  header.writeUInt16LE(0xfffe, 28);
  header.writeUInt16LE(9, 30);
  header.writeUInt16LE(6, 32);
  header.writeUInt32LE(fatSectors, 44);
  header.writeUInt32LE(nextSector, 48);
  header.writeUInt32LE(4096, 56);
  header.writeUInt32LE(0xfffffffe, 60);
  header.writeUInt32LE(0xfffffffe, 68);
  for (let index = 0; index < fatSectors; index++)
    header.writeUInt32LE(nextSector + directorySectors + index, 76 + index * 4);
  const padding = Buffer.alloc(directorySectors * sector - directory.byteLength);
  return Buffer.concat([header, ...bodies, directory, padding, fat]);
}

type Entry = { name: string; type: number; child: number; right: number; start: number; length: number };

function addFolder(entries: Entry[], folders: Map<string, number>, path: string): number {
  const known = folders.get(path);
  if (known !== undefined) return known;
  const slash = path.lastIndexOf('/');
  const parent = addFolder(entries, folders, slash < 0 ? '' : path.slice(0, slash));
  const index = addEntry(entries, parent, { name: path.slice(slash + 1), type: 1, start: 0, length: 0 });
  folders.set(path, index);
  return index;
}

/** Each entry is the right sibling of the one before: a valid, if unbalanced, tree. */
function addEntry(entries: Entry[], parent: number, entry: Pick<Entry, 'name' | 'type' | 'start' | 'length'>): number {
  const index = entries.length;
  entries.push({ ...entry, child: -1, right: -1 });
  let sibling = entries[parent];
  if (!sibling) throw new Error('no such storage');
  if (sibling.child < 0) sibling.child = index;
  else {
    sibling = entries[sibling.child];
    while (sibling && sibling.right >= 0) sibling = entries[sibling.right];
    if (sibling) sibling.right = index;
  }
  return index;
}

function writeEntry(entry: Entry): Buffer {
  const bytes = Buffer.alloc(128);
  bytes.write(entry.name, 0, 'utf16le');
  bytes.writeUInt16LE((entry.name.length + 1) * 2, 64);
  bytes.writeUInt8(entry.type, 66);
  bytes.writeInt32LE(-1, 68);
  bytes.writeInt32LE(entry.right, 72);
  bytes.writeInt32LE(entry.child, 76);
  bytes.writeInt32LE(entry.start, 116);
  bytes.writeUInt32LE(entry.length, 120);
  return bytes;
}
