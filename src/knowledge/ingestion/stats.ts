const listedErrorsMax = 100;

export type Stats = {
  documents: number;
  chunks: number;
  pages: number;
  bytes: number;
  failed: number;
  embedded_chunks: number;
  reused_chunks: number;
  unchanged: number;
  removed: number;
  errors: { item?: number; url?: string; document?: string; code: string; message: string }[];
};

export function emptyStats(): Stats {
  return {
    documents: 0,
    chunks: 0,
    pages: 0,
    bytes: 0,
    failed: 0,
    embedded_chunks: 0,
    reused_chunks: 0,
    unchanged: 0,
    removed: 0,
    errors: [],
  };
}

/** Counts and lists a document's failure. */
export function addError(stats: Stats, error: Stats['errors'][number]): void {
  stats.failed += 1;
  if (stats.errors.length < listedErrorsMax) stats.errors.push(error);
}

/** Counts a written document. */
export function addWritten(
  stats: Stats,
  ready: { prepared: { chunks: unknown[] }; isLocal: boolean; embedded: number; pages: number; bytes: number },
): void {
  const chunks = ready.prepared.chunks.length;
  stats.documents += 1;
  stats.chunks += chunks;
  stats.pages += ready.pages;
  stats.bytes += ready.bytes;
  stats.embedded_chunks += ready.embedded;
  stats.reused_chunks += ready.isLocal ? Math.max(0, chunks - ready.embedded) : 0;
}
