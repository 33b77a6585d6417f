import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '../clock.ts';
import { type Database, production } from '../db/database.ts';
import type { AuditMode, Auditor } from '../http/audit.ts';
import { statusOf } from '../http/errors.ts';
import { newUuid, parseId } from '../ids.ts';
import type { Logger } from '../log.ts';
import type { Identity } from '../tenancy/caller.ts';
import { digest } from '../tenancy/secrets.ts';
import {
  type ActorKind,
  type AuditEntry,
  addCredentialUses,
  type CredentialKind,
  type CredentialUse,
  endAuditEntry,
  insertAuditEntries,
} from './store.ts';

export type AuditLogDeps = {
  db: Database;
  clock: Clock;
  log: Logger;
  /** What is kept: nothing, changes, or changes of data as well. Uses of credentials are counted in any case. */
  keep: 'off' | 'changes' | 'all';
  /** Told of entries that were lost because too many waited. */
  onDropped?: (count: number) => void;
};

/** What an entry says before its change has an outcome. */
type Begun = Omit<AuditEntry, 'appId' | 'status' | 'resource'> & { appId: string | undefined };

const entriesSoonMs = 250;
const entriesRetryMs = 1_000;
const entriesBatchMax = 500;
const entriesWaitingMax = 10_000;
const usesEveryMs = 10_000;
const usesMax = 20_000;
const usesBatchMax = 1_000;

/** Keeps who changed what, and counts who used which credential when. */
export class AuditLog implements Auditor {
  readonly #deps: AuditLogDeps;
  #waiting: AuditEntry[] = [];
  #uses = new Map<string, CredentialUse & { bearer: string | undefined }>();
  #entriesTimer: NodeJS.Timeout | undefined;
  #usesTimer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(deps: AuditLogDeps) {
    this.#deps = deps;
  }

  /** How many entries are not written yet. */
  get waitingCount(): number {
    return this.#waiting.length;
  }

  keeps(mode: AuditMode): boolean {
    const { keep } = this.#deps;
    return keep === 'all' || (keep === 'changes' && mode !== 'data');
  }

  async audited<T>(
    mode: AuditMode,
    request: FastifyRequest,
    reply: FastifyReply,
    change: () => T,
  ): Promise<Awaited<T>> {
    const begun = this.#begin(request);
    if (begun === undefined) return await change();
    const early = mode === 'durable' && begun.appId !== undefined;
    if (early) await insertAuditEntries(this.#deps.db, [entryOf(begun, null, resourceInPath(request))]);
    let answer: Awaited<T>;
    try {
      answer = await change();
    } catch (error) {
      await this.#end(mode, early, begun, statusOf(error), resourceInPath(request));
      throw error;
    }
    await this.#end(mode, early, begun, reply.statusCode, resourceOf(answer, request));
    return answer;
  }

  count(identity: Identity, authorization: string | undefined, status: number): void {
    const kind = credentialKind(identity, authorization);
    if (kind === undefined) return;
    const bearer = kind === 'personal_token' || kind === 'developer_token' ? authorization : undefined;
    const name = useName(identity, bearer);
    const now = this.#deps.clock.now();
    let use = this.#uses.get(name);
    if (use === undefined) {
      if (this.#uses.size >= usesMax) {
        void this.flush();
        return;
      }
      const scope = 'appId' in identity ? { appId: identity.appId, sandboxId: identity.sandboxId } : undefined;
      const credential = actorOf(identity)?.actorId ?? '';
      use = { kind, scope, credential, bearer, firstAt: now, lastAt: now, requests: 0, refused: 0 };
      this.#uses.set(name, use);
      this.#soonUses();
    }
    use.requests += 1;
    use.lastAt = now;
    if (isRefusal(status)) use.refused += 1;
  }

  /** Writes everything that waits. Entries that cannot be written keep waiting; counts are given up. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(async () => {
      await this.#flushEntries();
      await this.#flushUses();
    });
    return this.#flushing;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#entriesTimer);
    clearTimeout(this.#usesTimer);
    await this.flush();
  }

  #begin(request: FastifyRequest): Begun | undefined {
    const { identity } = request;
    const actor = actorOf(identity);
    if (actor === undefined) return undefined;
    const { url = '', config } = request.routeOptions;
    return {
      appId: 'appId' in identity ? identity.appId : undefined,
      sandboxId: 'sandboxId' in identity ? identity.sandboxId : production,
      id: newUuid(),
      at: this.#deps.clock.now(),
      ...actor,
      credential: credentialKind(identity, request.headers.authorization) ?? 'session',
      action: actionOf(config.operationId ?? ''),
      method: request.method,
      route: url,
      requestId: request.id,
      address: request.ip,
    };
  }

  async #end(mode: AuditMode, early: boolean, begun: Begun, status: number, resource: string | null): Promise<void> {
    if (early) {
      const { appId = '', id } = begun;
      // The change is made and has its entry; that its outcome cannot be stored must not look like a failure.
      await endAuditEntry(this.#deps.db, { appId, id, status, resource }).catch((error: unknown) =>
        this.#deps.log.error({ err: error, entry: id }, 'An audit entry has no outcome'),
      );
      return;
    }
    // The request created the app itself, or failed to, and then there is nowhere to keep the entry.
    const appId = begun.appId ?? (resource === null ? undefined : parseId('app', resource));
    // Failed sign-ins are counted, not listed.
    if (appId === undefined || (begun.actorKind === 'publishable_key' && status >= 400)) return;
    const entry = entryOf({ ...begun, appId }, status, resource);
    if (mode === 'durable') await insertAuditEntries(this.#deps.db, [entry]);
    else this.#enqueue(entry);
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
      this.#flushing = this.#flushing.then(() => this.#flushUses());
    }, usesEveryMs).unref();
  }

  async #flushEntries(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.slice(0, entriesBatchMax);
      try {
        await insertAuditEntries(this.#deps.db, batch);
      } catch (error) {
        this.#deps.log.warn({ err: error, waiting: this.#waiting.length }, 'Audit entries wait');
        return this.#soonEntries(entriesRetryMs);
      }
      this.#waiting.splice(0, batch.length);
    }
  }

  async #flushUses(): Promise<void> {
    const uses = [...this.#uses.values()];
    this.#uses = new Map();
    for (let from = 0; from < uses.length; from += usesBatchMax) {
      const batch = uses.slice(from, from + usesBatchMax).map(({ bearer, ...use }) => ({
        ...use,
        credential: bearer === undefined ? use.credential : digest(bearer.slice(bearerPrefix.length)),
      }));
      try {
        await this.#deps.db.begin((tx) => addCredentialUses(tx, batch));
      } catch (error) {
        this.#deps.log.warn({ err: error, credentials: uses.length - from }, 'Uses of credentials were not counted');
        return;
      }
    }
  }
}

function entryOf(begun: Begun, status: number | null, resource: string | null): AuditEntry {
  return { ...begun, appId: begun.appId ?? '', status, resource };
}

function actorOf(identity: Identity): { actorKind: ActorKind; actorId: string } | undefined {
  switch (identity.kind) {
    case 'user':
      return { actorKind: 'user', actorId: identity.userId };
    case 'server':
      return { actorKind: 'secret_key', actorId: identity.keyId };
    case 'publishable':
      return { actorKind: 'publishable_key', actorId: identity.keyId };
    case 'developer':
    case 'developer-without-app':
      return { actorKind: 'developer', actorId: identity.developerId };
    default:
      return undefined;
  }
}

const bearerPrefix = 'Bearer ';

function credentialKind(identity: Identity, authorization: string | undefined): CredentialKind | undefined {
  switch (identity.kind) {
    case 'user':
      return authorization?.startsWith('sat_', bearerPrefix.length) ? 'personal_token' : 'user';
    case 'server':
      return 'secret_key';
    case 'publishable':
      return 'publishable_key';
    case 'developer':
    case 'developer-without-app':
      return authorization?.startsWith('dvt_', bearerPrefix.length) ? 'developer_token' : undefined;
    default:
      return undefined;
  }
}

/** A key or a user is in one place; a developer acts in many. */
function useName(identity: Identity, bearer: string | undefined): string {
  if (identity.kind === 'developer') return `${bearer}/${identity.appId}/${identity.sandboxId}`;
  return bearer ?? actorOf(identity)?.actorId ?? '';
}

function isRefusal(status: number): boolean {
  return status === 401 || status === 403 || status === 429;
}

/** `developerCreateKey` and `createKey` are one action by two paths. */
export function actionOf(operationId: string): string {
  const twin = /^developer([A-Z])(.*)$/.exec(operationId);
  return twin?.[1] === undefined ? operationId : `${twin[1].toLowerCase()}${twin[2]}`;
}

/** Ids alone: whatever else a client puts into a path may be a secret by mistake. */
const idPattern = /^[a-z]{3,5}_[0-9A-Za-z]{22}$/;

function resourceInPath(request: FastifyRequest): string | null {
  const { app: _app, ...params } = request.params as Record<string, string>;
  const last = Object.values(params).at(-1);
  if (last === undefined) return (request.params as { app?: string }).app ?? null;
  return idPattern.test(last) ? last : null;
}

/** The id of what was made or changed; else of what the path names. */
function resourceOf(answer: unknown, request: FastifyRequest): string | null {
  const { id, user } = (answer ?? {}) as { id?: unknown; user?: { id?: unknown } };
  const made = id ?? user?.id;
  if (typeof made === 'string' && idPattern.test(made)) return made;
  return resourceInPath(request);
}
