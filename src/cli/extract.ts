import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, UsageError } from './errors.ts';
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
};

export type Output = {
  source_url?: string;
  state: 'done' | 'failed';
  title?: string;
  error?: { code: string; message: string };
  file?: StoredFile;
};

export type Extraction = {
  id: string;
  state: 'running' | 'done' | 'failed';
  max_pages?: number;
  error?: { code: string; message: string };
  progress: { discovered: number; done: number; failed: number };
  output_count: number;
  outputs?: Output[];
};

/** `quarry extract <file|url>`: Markdown on standard output, or each page as a file below `--out`. */
export async function extract(session: Session, source: string, options: ExtractOptions): Promise<number> {
  const extraction = isUrl(source)
    ? await extractUrl(session, source, options)
    : await extractFile(session, source, options);
  return printExtraction(session, extraction, source, options);
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
  if (extraction.state === 'failed') {
    session.say(`${extraction.id} failed: ${extraction.error?.message ?? 'the server gave no reason'}`);
    return 1;
  }
  const done = outputs.flatMap((output) => (output.file === undefined ? [] : [{ ...output, file: output.file }]));
  if (options.out !== undefined) await writeFiles(session, done, options.out);
  else if (!session.json) await printAll(session, done);
  return 0;
}

export function isUrl(text: string): boolean {
  return /^https?:\/\//i.test(text);
}

/** Starts the job and waits until it ends. */
export async function extractUrl(session: Session, url: string, options: ExtractOptions): Promise<Extraction> {
  if (!options.site && options.maxPages !== undefined) throw new UsageError('--max-pages requires --site.');
  const started = await session.client.send<Extraction>('POST', '/extractions', {
    body: {
      url,
      mode: options.site ? 'site' : 'link',
      destination_kind: 'storage',
      ...(options.maxPages === undefined ? {} : { max_pages: options.maxPages }),
      ...(options.include === undefined ? {} : { include_paths: options.include }),
      ...(options.exclude === undefined ? {} : { exclude_paths: options.exclude }),
      ...ownersOf(options),
    },
  });
  session.onInterrupt(`${started.id} continues on the server and stores its pages as files there.`);
  return waitForExtraction(session, started);
}

async function extractFile(session: Session, path: string, options: ExtractOptions): Promise<Extraction> {
  if (options.site || options.maxPages !== undefined)
    throw new UsageError('--site and --max-pages require a URL that begins with http:// or https://.');
  const file = await findLocalFile(path, options);
  if ((file.bytes ?? 0) > documentBytesMax)
    throw new UsageError(`${path} is larger than 10 MB, the limit of an extraction. Ingest it instead.`);
  const stored = await uploadLocalFile(session, file, ownersOf(options));
  session.progress.show(`Reading ${file.name}`);
  return session.client.send<Extraction>('POST', '/extractions', {
    body: { file: stored.id, destination_kind: 'storage', ...ownersOf(options) },
  });
}

const documentBytesMax = 10 * 1024 * 1024;
const reopenMs = 500;

function ownersOf({ agent, org }: ExtractOptions): Record<string, string> {
  return { ...(agent === undefined ? {} : { agent }), ...(org === undefined ? {} : { org }) };
}

/** Follows the job's event stream, and reconnects when the stream ends before the job. */
async function waitForExtraction({ client, progress, signal }: Session, started: Extraction): Promise<Extraction> {
  let state: Extraction['state'] = started.state;
  const pages = new PageCount();
  while (state === 'running') {
    for await (const { data } of client.events(`/extractions/${started.id}/stream`)) {
      const now = data as Extraction;
      state = now.state;
      const { discovered, done, failed } = now.progress;
      const of = Math.min(discovered, now.max_pages ?? discovered);
      const words = `${pages.describe(done + failed, of)}${failed > 0 ? `, ${failed} failed` : ''}`;
      progress.show(words, of === 0 ? 0 : (done + failed) / of);
    }
    if (state !== 'running') break;
    await sleep(reopenMs, undefined, { signal });
    state = (await client.send<Extraction>('GET', `/extractions/${started.id}`)).state;
  }
  return client.send<Extraction>('GET', `/extractions/${started.id}`);
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

/** Writes each output below the directory, whatever its name says. */
async function writeFiles(session: Session, outputs: DoneOutput[], directory: string): Promise<void> {
  const root = resolve(directory);
  for (const [at, { file }] of outputs.entries()) {
    const path = join(root, file.filename);
    if (!path.startsWith(root + sep)) throw new ApiError(0, `The server returned a filename outside ${directory}.`);
    session.progress.show(`Writing ${file.filename}`, at / outputs.length);
    await mkdir(dirname(path), { recursive: true });
    await pipeline(await session.client.download(file.url), createWriteStream(path));
  }
  session.say(`${outputs.length} ${outputs.length === 1 ? 'file' : 'files'} in ${directory}`);
}
