import { BlobMissing, type BlobStore } from '../blob/blob-store.ts';
import type { Db } from '../db/database.ts';
import { readText } from '../knowledge/documents/store.ts';
import { readKeptVersion } from '../knowledge/versions/store.ts';
import { formatId, parseId } from '../lib/ids.ts';
import { writeZip, type ZipEntry } from '../lib/zip-writer.ts';
import { listRunsOfUser } from './export-runs.ts';
import { type ExportStep, exportSteps } from './export-steps.ts';
import { readRows } from './export-store.ts';
import { exported, leftOut } from './exported.ts';
import { presentScope } from './present.ts';
import { type ExportedUser, findBlobKeys, type Subject } from './store.ts';

type Row = Record<string, unknown>;
/** What the archive says about itself, last: without it, the archive is incomplete. */
type Contents = { rows: Record<string, number>; missing: string[] };
type ExportDeps = { db: Db; blobs: BlobStore };

/** Everything about a user as a ZIP archive: a file of lines of JSON for each kind, and the bytes of files. */
export function exportUser(deps: ExportDeps, user: ExportedUser, now: Date): AsyncGenerator<Buffer> {
  return writeZip(listEntries(deps, user, now));
}

async function* listEntries(deps: ExportDeps, user: ExportedUser, now: Date): AsyncGenerator<ZipEntry> {
  const contents: Contents = { rows: {}, missing: [] };
  const subject = { appId: user.appId, subjectId: user.id };
  for (const step of exportSteps(subject, user.email)) {
    const rows = rowsOf(deps.db, subject, step);
    yield* asFile(step.table, step.table === 'files' ? withPaths(rows) : rows, contents);
    yield* entriesBelow(deps, subject, step, contents);
  }
  const about = {
    ...{ user: formatId('user', user.id), ...presentScope(user), created_at: now.toISOString() },
    rows: contents.rows,
    missing_files: contents.missing,
    left_out: Object.keys(leftOut),
  };
  yield { name: 'export.json', content: once(Buffer.from(`${JSON.stringify(about, null, 2)}\n`)) };
}

/** The files of the archive that have what lies below the rows of a step. */
async function* entriesBelow(
  deps: ExportDeps,
  subject: Subject,
  step: ExportStep,
  contents: Contents,
): AsyncGenerator<ZipEntry> {
  const { db } = deps;
  const { appId } = subject;
  const pages = () => readRows(db, appId, step);
  if (step.table === 'files') yield* bytesOfFiles(deps, appId, pages(), contents);
  if (step.table === 'knowledge_documents') yield* asFile('knowledge_texts', textsOf(db, appId, pages()), contents);
  if (step.table === 'knowledge_versions')
    yield* asFile('knowledge_version_texts', textsOfVersions(db, appId, pages()), contents);
  if (step.table === 'automation_runs')
    for (const table of ['automation_run_entries', 'automation_run_output'])
      yield* asFile(
        table,
        rowsOfRuns(db, subject, { table, where: (each) => each`false`, ofRuns: 't.run_id' }),
        contents,
      );
}

/** A file of lines, if there is a line. The rows are counted. */
async function* asFile(table: string, pages: AsyncGenerator<Row[]>, contents: Contents): AsyncGenerator<ZipEntry> {
  const file = exported[table]?.file ?? table;
  const first = await pages.next();
  if (first.done === true) return;
  async function* lines(page: Row[]): AsyncGenerator<Buffer> {
    for (let rows: Row[] | undefined = page; rows !== undefined; rows = (await pages.next()).value ?? undefined) {
      contents.rows[file] = (contents.rows[file] ?? 0) + rows.length;
      yield Buffer.from(rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    }
  }
  yield { name: `${file}.ndjson`, content: lines(first.value) };
}

/** The rows of a step: those of its condition, then those of the user's runs. */
async function* rowsOf(db: Db, subject: Subject, step: ExportStep): AsyncGenerator<Row[]> {
  yield* readRows(db, subject.appId, step);
  yield* rowsOfRuns(db, subject, step);
}

async function* rowsOfRuns(db: Db, subject: Subject, { table, where, ofRuns }: ExportStep): AsyncGenerator<Row[]> {
  if (ofRuns === undefined) return;
  for await (const runs of listRunsOfUser(db, subject))
    yield* readRows(db, subject.appId, {
      table,
      where: (each) => each`${each(ofRuns)} = any(${runs}::uuid[]) and (${where(each)}) is not true`,
    });
}

async function* textsOf(db: Db, appId: string, pages: AsyncGenerator<Row[]>): AsyncGenerator<Row[]> {
  for await (const documents of pages)
    for (const { id } of documents) {
      const text = await readText(db, appId, parseId('document', String(id)) ?? '');
      if (text !== undefined) yield [{ document: id, text: text.toString() }];
    }
}

async function* textsOfVersions(db: Db, appId: string, pages: AsyncGenerator<Row[]>): AsyncGenerator<Row[]> {
  for await (const versions of pages)
    for (const { document, number } of versions) {
      const id = parseId('document', String(document)) ?? '';
      const kept = await readKeptVersion(db, appId, id, Number(number));
      if (kept !== undefined) yield [{ document, number, text: kept.content.toString() }];
    }
}

async function* bytesOfFiles(
  { db, blobs }: ExportDeps,
  appId: string,
  pages: AsyncGenerator<Row[]>,
  { missing }: Contents,
): AsyncGenerator<ZipEntry> {
  for await (const files of pages) {
    const keys = await findBlobKeys(
      db,
      appId,
      files.map(({ id }) => parseId('file', String(id)) ?? ''),
    );
    for (const file of files) {
      const id = String(file.id);
      const key = keys.get(parseId('file', id) ?? '');
      // Most large files are compressed already.
      if (key !== undefined)
        yield { name: pathOf(file), content: bytesOf(blobs, key, () => missing.push(id)), level: 0 };
    }
  }
}

async function* withPaths(pages: AsyncGenerator<Row[]>): AsyncGenerator<Row[]> {
  for await (const files of pages) yield files.map((file) => ({ ...file, path: pathOf(file) }));
}

/** Where the archive has the bytes of a file. Its name cannot lead out of the folder of its id. */
function pathOf({ id, filename }: Row): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: no file system takes them in names.
  const name = String(filename).replace(/[\u0000-\u001f\u007f/\\:*?"<>|]/g, '_');
  return `files/${String(id)}/${/^\.+$/.test(name) ? '_' : name}`;
}

/** The bytes of a file; none if they were deleted since its row was read, or are lost. */
async function* bytesOf(blobs: BlobStore, key: string, onMissing: () => void): AsyncGenerator<Buffer> {
  try {
    yield* (await blobs.read(key)) as AsyncIterable<Buffer>;
  } catch (error) {
    if (!(error instanceof BlobMissing)) throw error;
    onMissing();
  }
}

async function* once(content: Buffer): AsyncGenerator<Buffer> {
  yield content;
}
