import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDirectory } from '../../../src/backup/archive.ts';
import { formatManifest, type Manifest, readManifest } from '../../../src/backup/manifest.ts';
import { PartWriter, readBlobList, readRows, writePart } from '../../../src/backup/parts.ts';
import { projectRoot } from '../source.ts';
import type { UsedInstallation } from './installation.ts';

/** A database of one release and what its clients saw, in files that people can read. */
export type ReleasedDatabase = {
  /** The root secret. */
  secret: string;
  /** The manifest of the backup, without the names of its compressed files. */
  manifest: Manifest;
  /** Rows in the format of COPY, by table. Jobs are under `jobs`, the list of blobs under `blobs`. */
  rows: Record<string, string>;
  /** Contents of files by key, in base64. */
  blobs: Record<string, string>;
  used: UsedInstallation;
  responses: { as: string; path: string; body: unknown }[];
};

const folder = join(projectRoot, 'test/fixtures/releases');

/** The releases from which a database is kept. */
export function listReleases(): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}

export function loadRelease(version: string): ReleasedDatabase {
  const { rows: _, ...kept } = JSON.parse(readFileSync(join(folder, version, 'installation.json'), 'utf8'));
  const rows: ReleasedDatabase['rows'] = {};
  for (const section of readFileSync(join(folder, version, 'rows.txt'), 'utf8')
    .split(headingPattern)
    .slice(1)) {
    const title = section.slice(0, section.indexOf('\n'));
    rows[title.split(' ')[0] ?? ''] = section.slice(title.length + 1, -1);
  }
  return { ...kept, rows };
}

export function saveRelease(version: string, { rows, ...kept }: ReleasedDatabase): void {
  mkdirSync(join(folder, version), { recursive: true });
  const columns = new Map(kept.manifest.tables.map(({ name, columns: names }) => [name, names]));
  const text = Object.entries(rows).map(
    ([name, lines]) => `${heading}${[name, ...(columns.get(name) ?? [])].join(' ')}\n${lines}\n`,
  );
  writeFileSync(join(folder, version, 'rows.txt'), text.join(''));
  writeFileSync(join(folder, version, 'installation.json'), `${JSON.stringify(kept, null, 2)}\n`);
}

/** No row starts like this: COPY writes a backslash in a value as two. */
const heading = '\\table ';
const headingPattern = /^\\table /m;

/** Reads a backup into text. */
export async function readBackup(directory: string): Promise<Pick<ReleasedDatabase, 'manifest' | 'rows' | 'blobs'>> {
  const archive = openDirectory(directory);
  const manifest = await readManifest(archive);
  const rows: ReleasedDatabase['rows'] = {};
  const readText = async (parts: Manifest['jobs']['parts']) => {
    let text = '';
    for await (const bytes of readRows(archive, parts)) text += bytes.toString('utf8');
    return text;
  };
  for (const { name, parts } of manifest.tables) rows[name] = await readText(parts);
  rows.jobs = await readText(manifest.jobs.parts);
  rows.blobs = await readText(manifest.blobs.parts);
  const { store, close } = await archive.openBlobs('read');
  const blobs: ReleasedDatabase['blobs'] = {};
  for await (const { key } of readBlobList(archive, manifest.blobs.parts)) {
    const chunks: Buffer[] = [];
    for await (const chunk of await store.read(key)) chunks.push(chunk);
    blobs[key] = Buffer.concat(chunks).toString('base64');
  }
  await close();
  const plain = { ...manifest, tables: manifest.tables.map((table) => ({ ...table, parts: [] })) };
  return {
    manifest: { ...plain, jobs: { ...manifest.jobs, parts: [] }, blobs: { ...manifest.blobs, parts: [] } },
    rows,
    blobs,
  };
}

/** Writes the same content as a backup that `quarry restore` reads. The caller removes the directory. */
export async function writeBackup({ manifest, rows, blobs }: ReleasedDatabase): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'quarry-release-'));
  try {
    const archive = openDirectory(directory);
    const writeRows = async (name: string, prefix: string) => {
      const writer = new PartWriter(archive, prefix);
      await writer.write(Buffer.from(rows[name] ?? ''));
      return writer.finish();
    };
    const tables: Manifest['tables'] = [];
    for (const table of manifest.tables)
      tables.push({ ...table, ...(await writeRows(table.name, `rows/${table.name}`)) });
    const jobs = { ...manifest.jobs, ...(await writeRows('jobs', 'jobs/jobs')) };
    const list = await writeRows('blobs', 'blob-list/blobs');
    const { store, close } = await archive.openBlobs('write');
    for (const [key, base64] of Object.entries(blobs))
      await store.put(key, Buffer.from(base64, 'base64'), { contentType: 'text/plain' });
    await close();
    const { text, sum } = formatManifest({
      ...manifest,
      ...{ tables, jobs, blobs: { ...manifest.blobs, parts: list.parts } },
    });
    await writePart(archive, 'manifest.json', Buffer.from(text));
    await writePart(archive, 'manifest.sha256', Buffer.from(sum));
    return directory;
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    throw error;
  }
}
