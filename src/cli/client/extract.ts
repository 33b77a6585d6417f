import { createWriteStream, readFileSync } from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { defined } from '../../lib/defined.ts';
import { createDirectories } from '../../lib/directories.ts';
import { countOf } from '../count.ts';
import { ApiError, UsageError } from '../errors.ts';
import { findLocalFile, type StoredFile, uploadLocalFile } from './local-file.ts';
import { PageCount } from './progress.ts';
import { jsonLine, type Session } from './session.ts';

export type ExtractOptions = {
  site?: boolean;
  maxPages?: number;
  include?: string[];
  exclude?: string[];
  agent?: string;
  org?: string;
  name?: string;
  type?: string;
  out?: string;
  /** Keeps the file and its Markdown on the server. */
  keep?: boolean;
  /** A file with a JSON Schema. */
  schema?: string;
  instructions?: string;
};

export type Output = {
  source_url?: string;
  state: 'done' | 'failed';
  title?: string;
  error?: { code: string; message: string };
  file?: StoredFile;
  data_file?: StoredFile;
  data_error?: { code: string; message: string };
};

export type Extraction = {
  id: string;
  state: 'running' | 'done' | 'failed';
  max_pages?: number;
  error?: { code: string; message: string };
  progress: { discovered: number; done: number; failed: number };
  waiting_count?: number;
  data_progress?: { pending: number; done: number; failed: number; pieces: number; pieces_done: number };
  output_count: number;
  outputs?: Output[];
};

/**
 * `quarry extract <file|url>`: Markdown on standard output, or each page as a file below `--out`; with `--schema`, the data
 * instead of the Markdown, or in addition to it.
 */
export async function extract(session: Session, source: string, options: ExtractOptions): Promise<number> {
  if (isUrl(source)) return printExtraction(session, await extractUrl(session, source, options), source, options);
  const { extraction, stored } = await extractFile(session, source, options);
  const code = await printExtraction(session, extraction, source, options);
  if (!options.keep && !session.json) await removeStored(session, extraction, stored);
  return code;
}

/** Deletes what the extraction of a local file left on the server. What a credential may not delete stays. */
async function removeStored({ client, say }: Session, extraction: Extraction, stored: StoredFile): Promise<void> {
  const files = [stored, ...(extraction.outputs ?? []).flatMap((output) => filesOf(output).map(({ file }) => file))];
  const paths = [`/extractions/${extraction.id}`, ...files.map(({ id }) => `/files/${id}`)];
  for (const path of paths)
    try {
      await client.send('DELETE', path);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      say(`${path.slice(1)} stays on the server: ${error.message}`);
    }
}

/** `quarry extractions watch <extraction>`: waits until it ends, then prints what `extract` prints. */
export async function watchExtraction(
  session: Session,
  id: string,
  options: Pick<ExtractOptions, 'out'>,
): Promise<number> {
  const found = await session.client.send<Extraction>('GET', `/extractions/${encodeURIComponent(id)}`);
  return printExtraction(session, await waitForExtraction(session, found), id, options);
}

async function printExtraction(
  session: Session,
  extraction: Extraction,
  source: string,
  options: Pick<ExtractOptions, 'out'>,
): Promise<number> {
  if (session.json) await session.print(jsonLine(extraction));
  const outputs = extraction.outputs ?? [];
  for (const output of outputs.filter(({ state }) => state === 'failed'))
    session.say(`${output.source_url ?? source}: ${output.error?.message ?? 'failed'}`);
  for (const { source_url: url, data_error: error } of outputs)
    if (error !== undefined) session.say(`${url ?? source}: ${error.message}`);
  if (extraction.state === 'failed') {
    session.say(`${extraction.id} failed: ${extraction.error?.message ?? 'the server gave no reason'}`);
    return 1;
  }
  const done = outputs.flatMap((output) => (output.file === undefined ? [] : [{ ...output, file: output.file }]));
  if (options.out !== undefined) await writeFiles(session, outputs.flatMap(filesOf), options.out);
  else if (session.json) return 0;
  else if (extraction.data_progress !== undefined) await printData(session, outputs);
  else await printAll(session, done);
  return 0;
}

export function isUrl(text: string): boolean {
  return /^https?:\/\//i.test(text);
}

/** Starts the job and waits until it ends. */
export async function extractUrl(session: Session, url: string, options: ExtractOptions): Promise<Extraction> {
  if (!options.site && options.maxPages !== undefined) throw new UsageError('--max-pages requires --site.');
  const wanted = readWanted(options);
  const started = await session.client.send<Extraction>('POST', '/extractions', {
    body: {
      url,
      mode: options.site ? 'site' : 'link',
      destination_kind: 'storage',
      ...defined({ max_pages: options.maxPages, include_paths: options.include, exclude_paths: options.exclude }),
      ...wanted,
      ...ownersOf(options),
    },
  });
  session.onInterrupt(`${started.id} continues on the server and stores its pages as files there.`);
  return waitForExtraction(session, started);
}

async function extractFile(
  session: Session,
  path: string,
  options: ExtractOptions,
): Promise<{ extraction: Extraction; stored: StoredFile }> {
  if (options.site || options.maxPages !== undefined)
    throw new UsageError('--site and --max-pages require a URL that begins with http:// or https://.');
  const wanted = readWanted(options);
  const file = await findLocalFile(path, options);
  if ((file.bytes ?? 0) > documentBytesMax)
    throw new UsageError(`${path} is larger than 10 MB, the limit of an extraction. Ingest it instead.`);
  const stored = await uploadLocalFile(session, file, ownersOf(options));
  session.progress.show(`Reading ${file.name}`);
  const started = await session.client.send<Extraction>('POST', '/extractions', {
    body: { file: stored.id, destination_kind: 'storage', ...wanted, ...ownersOf(options) },
  });
  if (started.state !== 'running') return { extraction: started, stored };
  session.onInterrupt(`${started.id} continues on the server and stores its data as a file there.`);
  return { extraction: await waitForExtraction(session, started), stored };
}

/** The pages that were read; once all are, the pieces of them that were read for data. */
function describe(
  pages: PageCount,
  {
    progress: { discovered, done, failed },
    waiting_count: waiting = 0,
    max_pages: most,
    data_progress: data,
  }: Extraction,
) {
  const of = Math.min(discovered, most ?? discovered);
  const read = Math.min(done + failed + waiting, of);
  if (data !== undefined && data.pieces > 0 && read >= of)
    return [`${data.pieces_done} of ${data.pieces} pieces read`, data.pieces_done / data.pieces] as const;
  const words = `${pages.describe(read, of)}${failed > 0 ? `, ${failed} failed` : ''}`;
  return [words, of === 0 ? 0 : read / of] as const;
}

/** The schema and instructions of the request. */
function readWanted({ schema: path, instructions }: ExtractOptions): Record<string, unknown> {
  if (path === undefined) {
    if (instructions !== undefined) throw new UsageError('--instructions requires --schema.');
    return {};
  }
  let schema: unknown;
  try {
    schema = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new UsageError(`${path} cannot be read as JSON: ${error instanceof Error ? error.message : error}`);
  }
  return { schema, ...defined({ instructions }) };
}

const documentBytesMax = 10 * 1024 * 1024;
const reopenMs = 500;

function ownersOf({ agent, org }: ExtractOptions): Record<string, string> {
  return { ...defined({ agent, org }) };
}

/** Follows the job's event stream, and reconnects when the stream ends before the job. */
async function waitForExtraction({ client, progress, signal }: Session, started: Extraction): Promise<Extraction> {
  let state: Extraction['state'] = started.state;
  const pages = new PageCount();
  while (state === 'running') {
    for await (const { data } of client.events(`/extractions/${started.id}/stream`)) {
      const now = data as Extraction;
      state = now.state;
      progress.show(...describe(pages, now));
    }
    if (state !== 'running') break;
    await sleep(reopenMs, undefined, { signal });
    state = (await client.send<Extraction>('GET', `/extractions/${started.id}`)).state;
  }
  return client.send<Extraction>('GET', `/extractions/${started.id}`);
}

/** Prints the data of one document as it is; of several, one line of JSON each. */
async function printData(session: Session, outputs: readonly Output[]): Promise<void> {
  const withData = outputs.flatMap(({ source_url, data_file }) => (data_file ? [{ source_url, file: data_file }] : []));
  for (const { source_url, file } of withData) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of await session.client.download(file.url)) chunks.push(chunk);
    const { data } = JSON.parse(Buffer.concat(chunks).toString()) as { data: unknown };
    await session.print(outputs.length > 1 ? jsonLine({ source_url, data }) : `${JSON.stringify(data, null, 2)}\n`);
  }
}

function filesOf({ file, data_file: dataFile }: Output): { file: StoredFile }[] {
  return [file, dataFile].flatMap((each) => (each === undefined ? [] : [{ file: each }]));
}

type DoneOutput = Output & { file: StoredFile };

/** Prints one document as it is; several, each below a comment with its URL. */
async function printAll(session: Session, outputs: DoneOutput[]): Promise<void> {
  for (const [at, output] of outputs.entries()) {
    if (outputs.length > 1)
      await session.print(`${at === 0 ? '' : '\n'}<!-- ${output.source_url ?? output.file.filename} -->\n\n`);
    let last = 0;
    for await (const chunk of await session.client.download(output.file.url)) {
      await session.print(chunk);
      last = chunk.at(-1) ?? last;
    }
    if (last !== newline) await session.print('\n');
  }
}

const newline = 10;

/** Writes each output below the directory. Throws ApiError for a name that leads out of it. */
async function writeFiles(session: Session, outputs: { file: StoredFile }[], directory: string): Promise<void> {
  const root = resolve(directory);
  for (const [at, { file }] of outputs.entries()) {
    const path = join(root, file.filename);
    if (!path.startsWith(root + sep)) throw new ApiError(0, `The server returned a filename outside ${directory}.`);
    session.progress.show(`Writing ${file.filename}`, at / outputs.length);
    createDirectories(dirname(path));
    await pipeline(await session.client.download(file.url), createWriteStream(path));
  }
  session.say(`${countOf(outputs.length, 'file')} in ${directory}`);
}
