import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Database, production } from '../db/database.ts';
import { isRefusedByMove, runForEveryApp } from '../db/fences.ts';
import { statusOf } from '../http/errors.ts';
import type { ActorKind, AuditActor, AuditMode, Auditor } from '../http/route/audit.ts';
import type { Clock } from '../lib/clock.ts';
import { nativeId, newUuid, parseId } from '../lib/ids.ts';
import type { Logger } from '../lib/log.ts';
import type { Identity } from '../tenancy/caller.ts';
import type { Credential, Identified } from '../tenancy/credential.ts';
import { FailureCounter } from './failures.ts';
import {
  type AuditEntry,
  addCredentialUses,
  type CredentialUse,
  endAuditEntry,
  insertAuditEntries,
  noteDeveloperTokens,
  upsertFailedAttempts,
} from './store.ts';

type AuditLogDeps = {
  db: Database;
  /** The database of developers. */
  directory: Database;
  /** The database of an app that is not in `db`. Rejects while it cannot be used. */
  databaseElsewhere?: ((appId: string) => Promise<Database | undefined>) | undefined;
  clock: Clock;
  log: Logger;
  /** What is logged: nothing, changes, or also changes of data. Uses of credentials are always counted. */
  keep: 'off' | 'changes' | 'all';
  /** Called with the number of entries dropped because the queue was full. */
  onDropped?: (count: number) => void;
};

/** An entry before the outcome of its change is known. */
type Begun = Omit<AuditEntry, 'appId' | 'status' | 'resource'> & { appId: string | undefined };

const entriesSoonMs = 250;
const entriesRetryMs = 1_000;
const entriesBatchMax = 500;
const entriesWaitingMax = 10_000;
const usesEveryMs = 10_000;
const usesMax = 20_000;
const usesBatchMax = 1_000;

/** Records who changed what, and counts uses of credentials. */
export class AuditLog implements Auditor {
  readonly #deps: AuditLogDeps;
  #waiting: AuditEntry[] = [];
  readonly #failures = new FailureCounter();
  #uses = new Map<string, CredentialUse>();
  #entriesTimer: NodeJS.Timeout | undefined;
  #usesTimer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(deps: AuditLogDeps) {
    this.#deps = deps;
  }

  /** Entries not yet written. */
  get waitingCount(): number {
    return this.#waiting.length;
  }

  isRecorded(mode: AuditMode): boolean {
    const { keep } = this.#deps;
    return keep === 'all' || (keep === 'changes' && mode !== 'data');
  }

  async audited<T>(
    mode: AuditMode,
    request: FastifyRequest,
    reply: FastifyReply,
    change: () => T,
  ): Promise<Awaited<T>> {
    const actor = actorOf(request.identity, request.credential);
    const [entry] = actor === undefined ? [] : beginEntries(request, actor, this.#deps.clock.now());
    const early = mode === 'durable' && entry?.appId !== undefined ? entry : undefined;
    if (early) await insertAuditEntries(this.#deps.db, [entryOf(early, null, resourceInPath(request))]);
    const end = (status: number, resource: string | null) => {
      if (early) return this.#endEarly(early, status, resource);
      // Only the handler may know the actor.
      const by = request.auditNote?.actor ?? actor;
      return by && this.#end(mode, beginEntries(request, by, this.#deps.clock.now()), request, status, resource);
    };
    let result: Awaited<T>;
    try {
      result = await change();
    } catch (error) {
      await end(statusOf(error, request), resourceInPath(request));
      throw error;
    }
    await end(reply.statusCode, findResourceId(result, request));
    return result;
  }

  count({ identity, credential }: Identified, status: number): void {
    const used = credentialUseOf(identity, credential);
    if (used === undefined) return;
    const now = this.#deps.clock.now();
    const scope = 'appId' in identity ? { appId: identity.appId, sandboxId: identity.sandboxId } : undefined;
    // A key or a user belongs to one scope; a developer may act in many.
    const id = typeof used.credential === 'string' ? used.credential : used.credential.toString('hex');
    const name = `${id}/${scope?.appId}/${scope?.sandboxId}`;
    let use = this.#uses.get(name);
    if (use === undefined) {
      if (this.#uses.size >= usesMax) {
        void this.flush();
        return;
      }
      use = { ...used, scope, firstAt: now, lastAt: now, requests: 0, refused: 0 };
      this.#uses.set(name, use);
      this.#soonUses();
    }
    use.requests += 1;
    use.lastAt = now;
    if (isRefusal(status)) use.refused += 1;
  }

  /** Writes everything that is queued. Entries that cannot be written stay queued; counts are dropped. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(async () => {
      await this.#flushEntries();
      await this.#flushUses();
      await this.#flushFailures();
    });
    return this.#flushing;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#entriesTimer);
    clearTimeout(this.#usesTimer);
    await this.flush();
  }

  async #endEarly({ appId = '', id }: Begun, status: number, resource: string | null): Promise<void> {
    // The change is committed and has its entry. Failing to store the outcome must not fail the request.
    await endAuditEntry(this.#deps.db, { appId, id, status, resource }).catch((error: unknown) =>
      this.#deps.log.error({ err: error, entry: id }, 'Could not store the outcome of an audit entry'),
    );
  }

  async #end(
    mode: AuditMode,
    begun: readonly Begun[],
    request: FastifyRequest,
    status: number,
    resource: string | null,
  ): Promise<void> {
    const access = request.routeOptions.config.access?.kind;
    const failed = request.auditNote?.failed === true || status >= 400;
    for (const one of begun) {
      // The request creates the app. If it fails, there is no app to store the entry in.
      const appId = one.appId ?? (resource === null ? undefined : parseId('app', resource));
      if (appId === undefined) continue;
      const entry = entryOf({ ...one, appId }, status, resource);
      if (failed && (access === 'key' || access === 'public')) this.#countFailure(entry);
      else if (mode === 'durable') await insertAuditEntries(await this.#databaseOf(appId), [entry]);
      else if (mode !== 'failures') this.#enqueue(entry);
    }
  }

  #countFailure(entry: AuditEntry): void {
    if (!this.#failures.count(entry)) this.#deps.onDropped?.(1);
    this.#soonUses();
  }

  #enqueue(entry: AuditEntry): void {
    if (this.#waiting.length >= entriesWaitingMax) {
      this.#deps.onDropped?.(1);
    } else {
      this.#waiting.push(entry);
      this.#soonEntries(entriesSoonMs);
    }
  }

  #soonEntries(afterMs: number): void {
    if (this.#closed) return;
    this.#entriesTimer ??= setTimeout(() => {
      this.#entriesTimer = undefined;
      this.#flushing = this.#flushing.then(() => this.#flushEntries());
    }, afterMs).unref();
  }

  #soonUses(): void {
    if (this.#closed) return;
    this.#usesTimer ??= setTimeout(() => {
      this.#usesTimer = undefined;
      this.#flushing = this.#flushing.then(() => this.#flushUses()).then(() => this.#flushFailures());
    }, usesEveryMs).unref();
  }

  async #flushEntries(): Promise<void> {
    // Those whose own database cannot be used keep nobody else waiting.
    const left: AuditEntry[] = [];
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, entriesBatchMax);
      try {
        left.push(...(await this.#insert(batch)));
      } catch (error) {
        this.#waiting.push(...left);
        return this.#retryEntries(error);
      }
      this.#waiting.splice(0, batch.length);
    }
    this.#waiting = left;
    if (left.length > 0) this.#retryEntries(new Error('A database of their apps cannot be used.'));
  }

  #retryEntries(error: unknown): void {
    this.#deps.log.warn(
      { err: error, waiting: this.#waiting.length },
      'Could not write audit entries; they stay queued',
    );
    this.#soonEntries(entriesRetryMs);
  }

  /** Writes the entries, each where its app is. Returns those of apps in other databases that could not be written. */
  async #insert(entries: readonly AuditEntry[]): Promise<AuditEntry[]> {
    const isSpread = this.#deps.databaseElsewhere !== undefined;
    const here = isSpread ? [] : [...entries];
    const left: AuditEntry[] = [];
    for (const [appId, own] of isSpread ? Map.groupBy(entries, (entry) => entry.appId) : [])
      try {
        const db = await this.#databaseOf(appId);
        if (db === this.#deps.db) here.push(...own);
        else await insertAuditEntries(db, own);
      } catch {
        left.push(...own);
      }
    await insertAuditEntries(this.#deps.db, here).catch((error: unknown) => {
      if (!isRefusedByMove(error)) throw error;
      return this.#insertByApp(here);
    });
    return left;
  }

  async #databaseOf(appId: string): Promise<Database> {
    return (await this.#deps.databaseElsewhere?.(appId)) ?? this.#deps.db;
  }

  /** Entries of an app that was moved away meanwhile are dropped: a move waits longer than entries are queued. */
  async #insertByApp(entries: readonly AuditEntry[]): Promise<void> {
    for (const [appId, own] of Map.groupBy(entries, (entry) => entry.appId))
      await insertAuditEntries(this.#deps.db, own).catch((error: unknown) => {
        if (!isRefusedByMove(error)) throw error;
        this.#deps.log.warn({ app: appId, entries: own.length }, 'Dropped audit entries of an app that was moved');
        this.#deps.onDropped?.(own.length);
      });
  }

  async #flushUses(): Promise<void> {
    const uses = [...this.#uses.values()];
    this.#uses = new Map();
    for (let from = 0; from < uses.length; from += usesBatchMax) {
      const batch = uses.slice(from, from + usesBatchMax);
      try {
        const developerTokens = await this.#noteDeveloperTokens(batch);
        await runForEveryApp(() => this.#deps.db.begin((tx) => addCredentialUses(tx, batch, developerTokens)));
      } catch (error) {
        this.#deps.log.warn({ err: error, credentials: uses.length - from }, 'Could not count uses of credentials');
        return;
      }
    }
  }

  /** Without the directory, uses of other credentials are counted all the same. */
  async #noteDeveloperTokens(uses: readonly CredentialUse[]): Promise<ReadonlyMap<string, string>> {
    return noteDeveloperTokens(this.#deps.directory, uses).catch((error: unknown) => {
      this.#deps.log.warn({ err: error }, 'Could not count uses of developer tokens');
      return new Map();
    });
  }

  async #flushFailures(): Promise<void> {
    const entries = this.#failures.takeUnsaved();
    for (let from = 0; from < entries.length; from += entriesBatchMax)
      try {
        await runForEveryApp(() => upsertFailedAttempts(this.#deps.db, entries.slice(from, from + entriesBatchMax)));
      } catch (error) {
        this.#deps.log.warn({ err: error, entries: entries.length - from }, 'Could not count failed attempts');
        return;
      }
  }
}

/** The entries of one request: one for each scope of its actor, or one for an app that does not exist yet. */
function beginEntries(request: FastifyRequest, actor: AuditActor, at: Date): Begun[] {
  const { url = '', config } = request.routeOptions;
  const places = actor.scopes.length > 0 ? actor.scopes : [{ appId: undefined, sandboxId: production }];
  return places.map(({ appId, sandboxId }) => ({
    appId,
    sandboxId,
    id: newUuid(),
    at,
    actorKind: actor.kind,
    actorId: actor.id,
    credential: actor.credential,
    action: actionOf(config.operationId ?? ''),
    method: request.method,
    route: url,
    requestId: request.id,
    address: request.ip,
    attempts: null,
  }));
}

function entryOf(begun: Begun, status: number | null, resource: string | null): AuditEntry {
  return { ...begun, appId: begun.appId ?? '', status, resource };
}

function actorOf(identity: Identity | undefined, credential: Credential | undefined): AuditActor | undefined {
  if (identity === undefined || credential === undefined) return undefined;
  const scopes = 'appId' in identity ? [{ appId: identity.appId, sandboxId: identity.sandboxId }] : [];
  const by = (kind: ActorKind, id: string) => ({ scopes, kind, id, credential: credential.kind });
  switch (identity.kind) {
    case 'user':
      return by('user', identity.userId);
    case 'server':
      return by('secret_key', identity.keyId);
    case 'publishable':
      return by('publishable_key', identity.keyId);
    case 'developer':
    case 'developer-without-app':
      return by('developer', identity.developerId);
    default:
      return undefined;
  }
}

/** The credential whose use is counted: the token itself; for a session, the user or token behind it. */
function credentialUseOf(
  identity: Identity,
  credential: Credential | undefined,
): Pick<CredentialUse, 'kind' | 'credential'> | undefined {
  if (credential === undefined) return undefined;
  if ('keyId' in credential) return { kind: credential.kind, credential: credential.keyId };
  if (credential.kind === 'personal_token' || credential.kind === 'developer_token')
    return { kind: credential.kind, credential: Buffer.from(credential.digest, 'hex') };
  if ('tokenDigest' in credential)
    return { kind: 'developer_token', credential: Buffer.from(credential.tokenDigest, 'hex') };
  return identity.kind === 'user' ? { kind: 'user', credential: identity.userId } : undefined;
}

function isRefusal(status: number): boolean {
  return status === 401 || status === 403 || status === 429;
}

/** `developerCreateKey` and `createKey` are one action with two paths. */
export function actionOf(operationId: string): string {
  const twin = /^developer([A-Z])(.*)$/.exec(operationId);
  return twin?.[1] === undefined ? operationId : `${twin[1].toLowerCase()}${twin[2]}`;
}

/** Only ids: anything else in a path may be a secret sent by mistake. */
const idPattern = /^[a-z]{3,5}_[0-9A-Za-z]{22}$/;

function resourceInPath(request: FastifyRequest): string | null {
  const { app: _app, ...params } = request.params as Record<string, string>;
  const last = Object.values(params).at(-1);
  if (last === undefined) return (request.params as { app?: string }).app ?? null;
  const resource = nativeId(last);
  return idPattern.test(resource) ? resource : null;
}

/** The id of the resource that was created or changed, otherwise the one in the path. */
function findResourceId(result: unknown, request: FastifyRequest): string | null {
  const { id, user, ingestion } = (result ?? {}) as { id?: unknown; user?: { id?: unknown }; ingestion?: unknown };
  const named = id ?? user?.id ?? ingestion ?? request.auditNote?.resource;
  const resource = typeof named === 'string' ? nativeId(named) : '';
  return idPattern.test(resource) ? resource : resourceInPath(request);
}
