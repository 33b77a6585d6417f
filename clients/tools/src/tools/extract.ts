import { z } from 'zod';
import { defineTool, type ToolDefinition } from '../definition.ts';
import { ToolError } from '../errors.ts';
import type { Limits } from '../options.ts';
import type { QuarryClient, Session, StoredFile } from '../session.ts';
import { cutText, joinParts, requireOneOf } from '../text.ts';
import { describePart, offsetInput, type Part, partBytesMax, readPart } from './read.ts';

export type ExtractInput = {
  url?: string | undefined;
  file?: string | undefined;
  extraction?: string | undefined;
  mode?: 'link' | 'site' | undefined;
  max_pages?: number | undefined;
  output?: number | undefined;
  offset?: number | undefined;
};
type Failure = { code: string; message: string };
type Output = { number: number; title?: string; source_url?: string; size?: number; error?: Failure };
export type ExtractResult = {
  extraction: string;
  state: 'running' | 'done' | 'failed';
  error?: Failure;
  progress: { discovered: number; done: number; failed: number };
  outputs: Output[];
  /** Outputs that charactersMax left no room for. */
  outputs_left_out: number;
  /** A part of the Markdown of one output. */
  part?: Part & { output: number };
};
type Extraction = {
  id: string;
  kind: 'document' | 'link' | 'site';
  state: 'running' | 'done' | 'failed';
  url?: string;
  error?: Failure;
  progress: ExtractResult['progress'];
  outputs?: { ordinal: number; title?: string; source_url?: string; error?: Failure; file?: StoredFile }[];
};

/** Characters of a title, a URL or a message in the list of outputs. */
const nameCharactersMax = 200;

export function extractTool(client: QuarryClient, limits: Limits): ToolDefinition<ExtractInput, ExtractResult> {
  const { hosts, files, pagesMax, waitSeconds } = limits;
  const what = files
    ? 'a public web page or site, or a stored document (fil_…: PDF, office, mail …),'
    : 'a public web page or site';
  const only = hosts === undefined ? '' : ` Allowed hosts: ${hosts.join(', ')}.`;
  return defineTool<ExtractInput, ExtractResult>(client, limits, {
    name: 'extract',
    description: `Reads ${what} as Markdown. Waits up to ${waitSeconds} seconds; if the state is still running, call it again with the extraction's id. The same call with output and offset returns other pages and parts.${only}`,
    input: z.strictObject({
      url: z.string().max(8_192).optional().describe('The page, or the first page of the site.'),
      ...((files ? { file: z.string().max(200).optional().describe('fil_…') } : {}) as {
        file: z.ZodOptional<z.ZodString>;
      }),
      extraction: z.string().max(200).optional().describe('ext_…: one that was started before.'),
      mode: z
        .enum(['link', 'site'])
        .optional()
        .describe('With url: one page (link, default), or the linked pages too.'),
      max_pages: z.int().min(1).max(pagesMax).optional().describe(`With mode site. Default ${pagesMax}.`),
      output: z.int().min(0).optional().describe('The number of the page to read. Default: the first.'),
      offset: offsetInput.describe('The first byte of its Markdown. Default 0.'),
    }),
    async run({ url, file, extraction, mode = 'link', max_pages = pagesMax, output, offset = 0 }, session) {
      const [kind, value] = requireOneOf({ url, ...(files ? { file } : {}), extraction });
      if (kind === 'url') requireHost(hosts, value);
      const pages = kind === 'url' && mode === 'site' ? { max_pages } : {};
      const source = kind === 'url' ? { url: value, mode, ...pages } : { file: value };
      const started =
        kind === 'extraction'
          ? await getAllowed(session, value)
          : await session.request<Extraction>('POST', '/api/v1/extractions', {
              body: { ...source, destination_kind: 'storage' },
            });
      const found = await session.waitFor(
        started,
        ({ state }) => state !== 'running',
        () => getExtraction(session, started.id),
      );
      return present(session, found, output, offset);
    },
    describe,
  });
}

function getExtraction(session: Session, id: string): Promise<Extraction> {
  return session.request('GET', `/api/v1/extractions/${encodeURIComponent(id)}`);
}

/** An extraction that this tool could have started. */
async function getAllowed(session: Session, id: string): Promise<Extraction> {
  const found = await getExtraction(session, id);
  if (found.kind === 'document' && !session.limits.files)
    throw new ToolError('not_allowed', `${id} is the extraction of a file, which this tool may not read.`);
  if (found.url !== undefined) requireHost(session.limits.hosts, found.url);
  return found;
}

function requireHost(hosts: readonly string[] | undefined, url: string): void {
  if (hosts === undefined) return;
  if (!URL.canParse(url))
    throw new ToolError('invalid_arguments', 'url must be a whole URL, such as https://example.com/.');
  const { hostname } = new URL(url);
  const isAllowed = (host: string) =>
    host.startsWith('*.') ? hostname.endsWith(host.slice(1).toLowerCase()) : hostname === host.toLowerCase();
  if (!hosts.some(isAllowed))
    throw new ToolError('not_allowed', `${hostname} is not allowed. Allowed hosts: ${hosts.join(', ')}.`);
}

async function present(
  session: Session,
  found: Extraction,
  wanted: number | undefined,
  offset: number,
): Promise<ExtractResult> {
  const all = found.outputs ?? [];
  const chosen = all.find(({ ordinal, file }) => file !== undefined && (wanted === undefined || ordinal === wanted));
  if (wanted !== undefined && chosen === undefined)
    throw new ToolError('not_found', `${found.id} has no text with the number ${wanted}.`);
  const bytesMax = partBytesMax(session.limits);
  const outputs = listOutputs(all, bytesMax / 2);
  const room = Math.floor(bytesMax - describeOutputs(outputs).length);
  const part = chosen?.file === undefined ? undefined : await readPart(session, chosen.file, offset, room);
  return {
    extraction: found.id,
    state: found.state,
    ...(found.error === undefined ? {} : { error: found.error }),
    progress: found.progress,
    outputs,
    outputs_left_out: all.length - outputs.length,
    ...(part === undefined || chosen === undefined ? {} : { part: { output: chosen.ordinal, ...part } }),
  };
}

/** The first outputs, as many as the characters allow: the rest belongs to the text of one. */
function listOutputs(all: NonNullable<Extraction['outputs']>, charactersMax: number): Output[] {
  const outputs: Output[] = [];
  let left = charactersMax;
  for (const { ordinal, title, source_url, file, error } of all) {
    const output = {
      number: ordinal,
      ...(title === undefined ? {} : { title: cutText(title, nameCharactersMax) }),
      ...(source_url === undefined ? {} : { source_url: cutText(source_url, nameCharactersMax) }),
      ...(file === undefined ? {} : { size: file.size }),
      ...(error === undefined ? {} : { error: { ...error, message: cutText(error.message, nameCharactersMax) } }),
    };
    left -= describeOutputs([output]).length;
    if (left < 0) break;
    outputs.push(output);
  }
  return outputs;
}

function describeOutputs(outputs: Output[]): string {
  return outputs
    .map(({ number, title, source_url, size, error }) => {
      const end = error === undefined ? `${size} bytes` : `failed: ${error.message}`;
      return `\n- ${number}: ${joinParts(title, source_url, end)}`;
    })
    .join('');
}

function describe({
  extraction,
  state,
  error,
  progress,
  outputs,
  outputs_left_out: leftOut,
  part,
}: ExtractResult): string {
  const { done, failed, discovered } = progress;
  const more = leftOut === 0 ? '' : `\n- and ${leftOut} more`;
  const again = `extract with extraction ${extraction}`;
  return [
    `${extraction} is ${state}: ${done} of ${discovered} pages read, ${failed} failed.`,
    error === undefined ? '' : ` ${error.code}: ${error.message}`,
    state === 'running' ? ` Call ${again} to look again.` : '',
    outputs.length > 1 ? `${describeOutputs(outputs)}${more}` : '',
    part === undefined ? '' : `\n\n${describePart(part, `${again}, output ${part.output} and`, `Page ${part.output}`)}`,
  ].join('');
}
