import type { CrawlSettings } from '../crawls/types.ts';
import { type FileLinks, presentFile } from '../files/present.ts';
import { compact, iso } from '../http/route/present.ts';
import { formatId } from '../lib/ids.ts';
import type { ExtractionView } from './service.ts';
import type { ExtractionRow } from './store.ts';

/** The JSON of an extraction, with its outputs in order. */
export async function presentExtraction(deps: FileLinks, view: ExtractionView, now: Date) {
  return { ...presentWithoutOutputs(view), outputs: await Array.fromAsync(presentOutputs(deps, view, now)) };
}

/** The JSON of an extraction without its outputs: a site may have thousands. */
export function presentWithoutOutputs({ row, leftOut, wanted }: ExtractionView) {
  const structure = compact({ schema: wanted?.schema, instructions: wanted?.instructions, model: wanted?.model });
  return {
    ...presentSummary(row),
    ...presentOptions(row),
    ...structure,
    ...(leftOut.length > 0 ? { left_out: leftOut } : {}),
  };
}

/** The options of a site, in the form in which a request would start the same extraction again. */
function presentOptions({ kind, options }: ExtractionRow) {
  if (kind !== 'site') return {};
  const { includePaths, excludePaths, maxDepth, allowSubdomains, ignoreRobots, sitemap } =
    options as unknown as CrawlSettings;
  return compact({
    include_paths: includePaths.length > 0 ? includePaths : null,
    exclude_paths: excludePaths.length > 0 ? excludePaths : null,
    max_depth: maxDepth,
    allow_subdomains: allowSubdomains,
    ignore_robots: ignoreRobots,
    sitemap,
  });
}

export async function* presentOutputs(deps: FileLinks, view: ExtractionView, now: Date) {
  for (const output of view.outputs) {
    const file = output.fileId === null ? undefined : view.files.get(output.fileId);
    yield {
      ...compact({
        id: formatId('extractionOutput', output.id),
        ordinal: output.ordinal,
        source_url: output.sourceUrl,
        state: output.state,
        error: output.error,
        title: output.title,
        metadata: output.metadata,
        ...output.page,
        file: file && (await presentFile(deps, file, now)),
        created_at: iso(output.createdAt),
      }),
      ...(await presentData(deps, view, output.id, now)),
    };
  }
}

async function presentData(deps: FileLinks, { files, data }: ExtractionView, outputId: string, now: Date) {
  const found = data.get(outputId);
  if (found === undefined) return {};
  const file = found.fileId === null ? undefined : files.get(found.fileId);
  return {
    // The data itself may be null.
    ...(found.hasValues ? { data: found.data, spans: found.spans ?? [] } : {}),
    ...compact({ data_file: file && (await presentFile(deps, file, now)), data_error: found.error }),
  };
}

function presentStructuring(row: ExtractionRow) {
  if (row.dataPending === null) return {};
  return {
    data_progress: {
      pending: row.dataPending,
      done: row.dataDone ?? 0,
      failed: row.dataFailed ?? 0,
      pieces: row.dataPieces ?? 0,
      pieces_done: row.dataPiecesDone ?? 0,
    },
    usage: { total_tokens: row.tokens, requests: row.requests },
  };
}

/** The JSON of an extraction in lists and event streams: without its outputs. */
export function presentSummary(row: ExtractionRow) {
  return compact({
    id: formatId('extraction', row.id),
    kind: row.kind,
    state: row.state,
    destination: compact({ kind: row.destinationKind, path_prefix: row.destinationPath }),
    file: row.fileId && formatId('file', row.fileId),
    url: row.url,
    mode: row.kind === 'document' ? null : row.kind,
    max_pages: row.maxPages,
    agent: row.agentId && formatId('agent', row.agentId),
    org: row.orgId && formatId('org', row.orgId),
    failure_reason: row.failureReason,
    error: row.error,
    output_count: row.outputCount,
    byte_count: row.outputBytes,
    progress: { discovered: row.discovered ?? 1, done: row.done ?? 1, failed: row.failed ?? 0 },
    waiting_count: row.state === 'running' && row.waiting ? row.waiting : undefined,
    ...presentStructuring(row),
    created_at: iso(row.createdAt),
    updated_at: iso(row.updatedAt),
  });
}
