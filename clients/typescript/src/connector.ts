import type { CallOptions, Connection } from './connection.ts';
import { QuarryError } from './errors.ts';
import { knowledge } from './generated/knowledge.ts';
import type { KnowledgeSync, PutKnowledgeSyncBatchRequest } from './generated/schema.ts';
import { pause, poll } from './wait.ts';

type Upsert = NonNullable<PutKnowledgeSyncBatchRequest['upserts']>[number];
type Deletion = NonNullable<PutKnowledgeSyncBatchRequest['deletes']>[number];

/** What a connector found, and where it continues afterwards: a text that only the connector understands. */
export type ConnectorBatch = { upserts?: Upsert[]; deletes?: Deletion[]; cursor: string | null };

/** A program that copies the documents of another system. Each function continues after the batch with this cursor. */
export type Connector = {
  /** Everything there is, from the beginning if the cursor is null. What it does not yield is deleted. */
  full(cursor: string | null): AsyncIterable<ConnectorBatch>;
  /** What has changed since the cursor; null if the source was never filled. */
  changes?(cursor: string | null): AsyncIterable<ConnectorBatch>;
};

export type ConnectorOptions = CallOptions & {
  /** Continue or replace a sync whose connector died, without waiting until it expires. Only one may run then. */
  takeOver?: boolean;
  /** Let a full sync delete more than half of the source. */
  confirmDeletions?: boolean;
  /** How long after its last batch others may resume the sync. Default 600. */
  expiresInSeconds?: number;
};

/** Runs connectors of a source. */
export const connector = (c: Connection, source: string, { full, changes }: Connector) => {
  const calls = knowledge(c);
  return {
    /**
     * Runs the connector once and resolves when everything is indexed. If it throws, a full sync stays, so that the next
     * run resumes it when it has expired (with `takeOver`, immediately); one of changes loses nothing.
     */
    async run(mode: 'full' | 'changes', options: ConnectorOptions = {}): Promise<KnowledgeSync> {
      const { takeOver, confirmDeletions, expiresInSeconds, ...call } = options;
      const read = mode === 'full' ? full : changes;
      if (read === undefined) throw new QuarryError('invalid_parameters', 'This connector finds no changes.');
      let sync = await calls.startSync(
        source,
        {
          mode,
          ...(takeOver === undefined ? {} : { take_over: takeOver }),
          ...(expiresInSeconds === undefined ? {} : { expires_in_seconds: expiresInSeconds }),
        },
        call,
      );
      try {
        for await (const batch of read(sync.cursor))
          for (const part of partsOf(batch)) sync = await send(sync, part, call);
      } catch (error) {
        if (mode === 'changes')
          await calls.abortSync(sync.id, { fence: sync.fence }, { ...call, retries: 0 }).catch(() => {});
        throw error;
      }
      const counts = { fence: sync.fence, batches: sync.next_batch - 1, documents: sync.documents };
      const confirmed = confirmDeletions === undefined ? {} : { confirm_deletions: confirmDeletions };
      await calls.completeSync(sync.id, { ...counts, ...confirmed }, call);
      return poll(
        () => calls.getSync(sync.id, call),
        ({ status }) => status !== 'completing',
        call.signal,
      );
    },
  };

  /** Sends a batch, and waits while the server has enough to index. */
  async function send(
    sync: KnowledgeSync,
    batch: Omit<PutKnowledgeSyncBatchRequest, 'fence'>,
    options: CallOptions,
  ): Promise<KnowledgeSync> {
    for (;;) {
      try {
        return await calls.sendSyncBatch(sync.id, String(sync.next_batch), { fence: sync.fence, ...batch }, options);
      } catch (error) {
        if (!(error instanceof QuarryError && error.status === 429)) throw error;
        await pause(Math.max(error.retryAfterMs ?? 0, 1_000), options.signal);
      }
    }
  }
};

const upsertsMax = 100;
const deletesMax = 1_000;

/** Divides a batch as the server wants it. Only the last part has the cursor. */
function partsOf({
  upserts = [],
  deletes = [],
  cursor,
}: ConnectorBatch): Omit<PutKnowledgeSyncBatchRequest, 'fence'>[] {
  const parts: Omit<PutKnowledgeSyncBatchRequest, 'fence'>[] = [];
  for (let at = 0; at < upserts.length; at += upsertsMax) parts.push({ upserts: upserts.slice(at, at + upsertsMax) });
  for (let at = 0; at < deletes.length; at += deletesMax) parts.push({ deletes: deletes.slice(at, at + deletesMax) });
  const last = parts.pop() ?? {};
  return [...parts, { ...last, cursor }];
}

/**
 * Checks that a connector keeps its promises, against a server: it lists each document once, finds the same twice,
 * continues after every batch, and reports no changes where there are none. What it reads must not change meanwhile.
 * `newSource` creates an empty source of the type `knowledge/documents`. Returns the problems.
 */
export async function checkConnector(
  c: Connection,
  newSource: () => Promise<string>,
  subject: Connector,
): Promise<string[]> {
  const problems: string[] = [];
  const listed = new Set<string>();
  let batches = 0;
  const watched: Connector = {
    async *full(cursor) {
      for await (const batch of subject.full(cursor)) {
        batches += 1;
        if (batch.cursor === null || batch.cursor === '') problems.push(`Batch ${batches} has no cursor.`);
        for (const { external_id: id } of batch.upserts ?? []) {
          if (listed.has(id)) problems.push(`A full listing contains "${id}" twice.`);
          listed.add(id);
        }
        yield batch;
      }
    },
  };
  const source = await newSource();
  await connector(c, source, watched).run('full');
  const wanted = await documentsOf(c, source);
  for (const id of listed) if (!wanted.has(id)) problems.push(`"${id}" could not be indexed.`);
  const again = await connector(c, source, subject).run('full');
  if (Number(again.stats.written) > 0) problems.push('A second full sync writes documents that have not changed.');
  if (Number(again.stats.deleted) > 0) problems.push('A second full sync deletes documents that still exist.');
  for (let after = 0; after < Math.min(batches, 5); after++)
    await checkInterrupted(c, await newSource(), subject, after, wanted, problems);
  if (subject.changes) {
    const { stats } = await connector(c, source, subject).run('changes');
    if (Number(stats.written) + Number(stats.deleted) > 0) problems.push('It reports changes where there are none.');
  }
  return problems;
}

/** Stops the connector after some batches, and lets another run continue. */
async function checkInterrupted(
  c: Connection,
  source: string,
  subject: Connector,
  after: number,
  wanted: Map<string, string>,
  problems: string[],
): Promise<void> {
  const stop = new Error('stopped');
  const stopped: Connector = {
    async *full(cursor) {
      let sent = 0;
      for await (const batch of subject.full(cursor)) {
        if (sent++ === after) throw stop;
        yield batch;
      }
    },
  };
  await connector(c, source, stopped)
    .run('full')
    .catch((error: unknown) => {
      if (error !== stop) throw error;
    });
  await connector(c, source, subject).run('full', { takeOver: true });
  const found = await documentsOf(c, source);
  const missing = [...wanted].filter(([id, hash]) => found.get(id) !== hash).length;
  const extra = [...found.keys()].filter((id) => !wanted.has(id)).length;
  if (missing + extra > 0)
    problems.push(`Stopped after ${after} batches and resumed, ${missing} documents differ and ${extra} are too many.`);
}

/** The hashes of the texts of a source by external id. */
async function documentsOf(c: Connection, source: string): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for await (const { external_id: id, content_hash: hash } of knowledge(c).listDocuments({
    source: [source],
    page_size: 100,
  }))
    if (id !== undefined) found.set(id, hash);
  return found;
}
