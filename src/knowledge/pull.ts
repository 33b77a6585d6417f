import type { Db } from '../db/database.ts';
import { nobody } from '../db/database.ts';
import { findVisibleFile } from '../files/store.ts';
import { parseId } from '../ids.ts';
import type { AgentCaller, Caller, OrgRole, TeamRole } from '../tenancy/caller.ts';
import { listUpstream, setUpstream } from './document-store.ts';
import { removeDocument } from './indexing.ts';
import { describeFailure, documentBytesMax, hashBytes, type IngestionRun, type Input } from './ingestion-run.ts';
import type { IngestionError } from './ingestion-store.ts';
import { payloadFile } from './kinds.ts';
import type { SourceRow } from './store.ts';
import type { PageAnswer } from './upstream.ts';

const sitePagesDefault = 100;

/**
 * Brings a source's documents to what its upstream is now. What did not change is left alone; what is gone there goes
 * here. Answers why nothing could be read at all, or undefined. Safe to repeat: a second run finds everything unchanged.
 */
export async function pullSource(run: IngestionRun, source: SourceRow): Promise<IngestionError | undefined> {
  switch (source.type) {
    case 'file/document':
      return pullFile(run, source);
    case 'web/link':
      return pullLink(run, source);
    case 'scrape/site':
      return pullSite(run, source);
    default:
      return { code: 'unsupported_content', message: 'This type of source has nothing to pull from.' };
  }
}

async function pullFile(run: IngestionRun, source: SourceRow): Promise<IngestionError | undefined> {
  const { db, blobs } = run.deps;
  const named = payloadFile(source.payload);
  const fileId = typeof named === 'string' ? parseId('file', named) : undefined;
  const owner = await ownerAsCaller(db, source);
  const file = fileId === undefined || !owner ? undefined : await findVisibleFile(db, owner, fileId);
  if (!file)
    return { code: 'not_found', message: 'The file does not exist, or the owner of the source may not see it.' };
  const old = (await listUpstream(db, source.appId, source.id))[0];
  if (old?.bytesHash.equals(file.checksum)) {
    run.stats.unchanged += 1;
    run.stats.documents = 1;
    return undefined;
  }
  return attempt(run, source, async () => ({
    ...emptyInput,
    documentId: old?.id ?? null,
    bytes: Buffer.from(await blobs.readAll(file.blobKey, documentBytesMax)),
    filename: file.filename,
    contentType: file.contentType,
    fileId: file.id,
  }));
}

async function pullLink(run: IngestionRun, source: SourceRow): Promise<IngestionError | undefined> {
  const pages = run.deps.pages;
  const url = source.payload?.url;
  if (!pages || typeof url !== 'string') return unreachable;
  const site = await openSite(run, source);
  const old = site.any();
  const answer = await pages.read(url, old?.upstream ?? undefined, run.signal);
  if (answer.kind === 'gone' || answer.kind === 'failed')
    return { code: answer.kind === 'failed' ? answer.code : 'fetch_failed', message: answer.message };
  const error = await site.take(answer, old);
  return error ?? undefined;
}

async function pullSite(run: IngestionRun, source: SourceRow): Promise<IngestionError | undefined> {
  const pages = run.deps.pages;
  const payload = source.payload ?? {};
  if (!pages || typeof payload.url !== 'string') return unreachable;
  const site = await openSite(run, source);
  const outcome = await pages.crawl(
    {
      url: payload.url,
      pagesMax: typeof payload.max_pages === 'number' ? payload.max_pages : sitePagesDefault,
      includePaths: textList(payload.include_paths),
      excludePaths: textList(payload.exclude_paths),
      depthMax: typeof payload.max_depth === 'number' ? payload.max_depth : undefined,
      allowSubdomains: payload.allow_subdomains === true,
    },
    (url) => site.known(url)?.upstream ?? undefined,
    async (answer) => {
      const error = await site.take(answer, site.known(answer.url));
      if (error) run.addError({ url: answer.url, ...error });
    },
    run.signal,
  );
  if ('error' in outcome) return outcome.error;
  if (outcome.complete) await site.removeUnseen();
  const { stats } = run;
  if (stats.documents + stats.unchanged === 0 && stats.errors[0])
    return { code: stats.errors[0].code, message: stats.errors[0].message };
  return undefined;
}

const unreachable: IngestionError = { code: 'fetch_failed', message: 'The source names no page that can be fetched.' };

function textList(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

const emptyInput: Omit<Input, 'bytes'> = {
  documentId: null,
  isText: false,
  filename: null,
  contentType: null,
  title: null,
  metadata: null,
  fileId: null,
  sourceUrl: null,
  upstream: null,
};

type Known = Awaited<ReturnType<typeof listUpstream>>[number];

/** The documents that the source has of its pages, and what has been seen of them in this pull. */
async function openSite(run: IngestionRun, source: SourceRow) {
  const { db } = run.deps;
  const rows = await listUpstream(db, source.appId, source.id);
  const byUrl = new Map(rows.map((row) => [row.sourceUrl ?? '', row]));
  const seen = new Set<string>();
  return {
    known: (url: string) => byUrl.get(url),
    any: () => rows[0],

    /** Stores what came of a page. Answers its failure. */
    async take(answer: PageAnswer, old: Known | undefined): Promise<IngestionError | undefined> {
      if (answer.kind === 'gone') return undefined;
      if (old) seen.add(old.id);
      if (answer.kind === 'failed') return { code: answer.code, message: answer.message };
      if (answer.kind === 'unchanged' || (old && hashBytes(answer.bytes).equals(old.bytesHash))) {
        run.stats.unchanged += 1;
        run.stats.pages += 1;
        if (old && answer.kind === 'content')
          await run.commit((tx) => setUpstream(tx, source.appId, old.id, answer.upstream));
        return undefined;
      }
      return attempt(run, source, async () => ({
        ...emptyInput,
        documentId: old?.id ?? null,
        bytes: answer.bytes,
        contentType: answer.contentType,
        sourceUrl: answer.url,
        upstream: answer.upstream,
      }));
    },

    /** Pages that the crawl no longer came by are gone. */
    async removeUnseen(): Promise<void> {
      const key = { appId: source.appId, sourceId: source.id };
      for (const row of rows)
        if (!seen.has(row.id) && (await run.commit((tx) => removeDocument(tx, key, row.id)))) run.stats.removed += 1;
    },
  };
}

/** Prepares and writes one document. Answers the failure that is the document's own. */
async function attempt(
  run: IngestionRun,
  source: SourceRow,
  read: () => Promise<Input>,
): Promise<IngestionError | undefined> {
  try {
    await run.write(source, await run.prepare(source, await read()));
    return undefined;
  } catch (error) {
    const failure = describeFailure(error);
    if (!failure) throw error;
    return failure;
  }
}

/** The source's owner as a caller: what a pull may read is what the owner may read now. */
async function ownerAsCaller(db: Db, source: SourceRow): Promise<Caller | undefined> {
  const scope = { appId: source.appId, sandboxId: source.sandboxId };
  if (source.userId !== null) {
    const [user] = await db<{ orgId: string | null; orgRole: OrgRole | null }[]>`
      select org_id, org_role from users where app_id = ${source.appId} and id = ${source.userId}`;
    if (!user) return undefined;
    return {
      ...scope,
      kind: 'user',
      userId: source.userId,
      orgId: user.orgId ?? undefined,
      orgRole: user.orgRole ?? undefined,
      teams: await teamsOf(db, source.appId, 'user_id', source.userId),
    };
  }
  const agent: AgentCaller = {
    ...scope,
    kind: 'agent',
    agentId: nobody,
    orgId: source.orgId ?? undefined,
    teams: new Map(),
  };
  if (source.teamId !== null) return { ...agent, orgId: undefined, teams: new Map([[source.teamId, 'member']]) };
  if (source.agentId === null) return agent;
  const [row] = await db<{ orgId: string | null; teamId: string | null }[]>`
    select org_id, team_id from agents where app_id = ${source.appId} and id = ${source.agentId}`;
  if (!row) return undefined;
  const teams = new Map(await teamsOf(db, source.appId, 'agent_id', source.agentId));
  if (row.teamId !== null) teams.set(row.teamId, 'member');
  return { ...agent, agentId: source.agentId, orgId: row.orgId ?? undefined, teams };
}

async function teamsOf(
  db: Db,
  appId: string,
  column: 'user_id' | 'agent_id',
  id: string,
): Promise<Map<string, TeamRole>> {
  const rows = await db<{ teamId: string; role: TeamRole }[]>`
    select team_id, role from team_memberships where app_id = ${appId} and ${db(column)} = ${id}`;
  return new Map(rows.map((row) => [row.teamId, row.role]));
}
