import type { FastifyReply } from 'fastify';
import { whenClosed } from '../http/closed.ts';
import type { Knowledge } from '../knowledge/domain.ts';
import type { Identity } from '../tenancy/caller.ts';

/** A signal that is aborted when the reader disconnects before the response has ended. */
export function abortedWithReader(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  whenClosed(reply.raw, () => {
    if (!reply.raw.writableFinished) gone.abort();
  });
  return gone.signal;
}

/** Whether a reader of a stream still sees these documents. */
export function seesDocuments(
  { documents }: Knowledge,
  ids: readonly string[],
): (reader: Identity) => Promise<boolean> {
  const all = [...new Set(ids)];
  return async (reader) => 'appId' in reader && reader.kind !== 'publishable' && documents.seesAll(reader, all);
}
