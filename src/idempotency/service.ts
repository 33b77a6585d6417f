import { createHash, hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Database, type Db, nobody, production } from '../db/database.ts';
import { receiveForm } from '../files/form.ts';
import { requireMinimumSpeed } from '../http/body/body.ts';
import { appOf } from '../http/body/intake.ts';
import { digestLongTexts } from '../http/body/long-text.ts';
import { presentError, toAppError } from '../http/errors.ts';
import type { Idempotency, IdempotencyCaller } from '../http/route/idempotency-key.ts';
import type { Clock } from '../lib/clock.ts';
import { AppError, invalidField } from '../lib/errors.ts';
import { newUuid } from '../lib/ids.ts';
import { limits } from '../lib/limits.ts';
import type { Logger } from '../lib/log.ts';
import { canSeeWholeApp, nameCaller } from '../tenancy/caller.ts';
import { fitsShare } from '../tenancy/room.ts';
import type { Secrets } from '../tenancy/secrets.ts';
import * as store from './store.ts';
import { requireStillVisible } from './visible.ts';

type IdempotencyDeps = {
  db: Database;
  clock: Clock;
  log: Logger;
  secrets: Secrets;
  /** The limits of each space: production, or one sandbox. */
  recordsMax: number;
  bytesMax: number;
  /** The longest body that is hashed to compare it with the first one. */
  uploadBytesMax: number;
};

/** A completed request. */
type Completed = store.RecordRow & { status: number };

type Response = { status: number; headers: Record<string, string>; text: string | null };

const keptMs = 24 * 60 * 60 * 1_000;
/** The claim of a process that dies ends after this time. A living process renews its claim. */
const claimMs = 30_000;
const renewEveryMs = 10_000;
/** The headers of a handler or an error that are stored with the response. */
const keptHeaders = [
  'etag',
  'location',
  'allow',
  'accept-encoding',
  'tus-resumable',
  'upload-offset',
  'upload-expires',
];
/** These statuses tell the client to send a different or a later request, so the key stays free. */
const retriable = new Set([401, 408, 429]);

/** Stores the responses of requests with an Idempotency-Key, each in the transaction of the request's changes. */
export function createIdempotency(deps: IdempotencyDeps): Idempotency {
  return {
    async run({ key, caller, request, reply, change, wrap }) {
      const place = placeOf(request, caller ?? callerOf(request), key);
      const isStreamed = request.routeOptions.config.rawBody !== undefined;
      const requestDigest = isStreamed ? undefined : await digestOfJson(request);
      const claim = newUuid();
      let found: Awaited<ReturnType<typeof claimOrFind>>;
      try {
        found = await claimOrFind(deps, place, claim, requestDigest);
      } catch (error) {
        if (isStreamed) request.raw.resume();
        throw error;
      }
      if (found !== undefined) {
        if (isStreamed) {
          const digest = await requireMinimumSpeed(request, hashAgain(request, deps.uploadBytesMax));
          if (found.requestDigest?.equals(digest) === false) throw reused();
        }
        const text = found.body && deps.secrets.unwrap(found.body).plain.toString();
        // If the path is the credential, it was checked together with the caller.
        if (caller === undefined)
          await requireStillVisible(request, found.status < 300 && text ? JSON.parse(text) : undefined);
        reply.header('idempotency-replayed', 'true');
        return send(reply, { status: found.status, headers: found.headers ?? {}, text });
      }
      if (isForm(request)) request.formDigest = incomplete;
      else if (isStreamed) request.bodyHash = createHash('sha256');
      let streamed: Buffer | undefined;
      const digestOf = () => {
        streamed ??= requestDigest ?? digestOfStream(request);
        return streamed;
      };
      let response: Response | undefined;
      await wrap(async () => {
        const first = await runFirst(deps, { request, place, claim, digestOf }, reply, change);
        response = first.response;
        return first.result;
      });
      return send(reply, response as unknown as Response);
    },
  };
}

/** Claims the key and returns undefined, or returns the completed request. 409 while it is in progress. */
async function claimOrFind(
  deps: IdempotencyDeps,
  place: Place,
  claim: string,
  requestDigest: Buffer | undefined,
): Promise<Completed | undefined> {
  const { db, clock } = deps;
  // A record may expire between the two statements.
  for (let tries = 0; tries < 3; tries++) {
    const claimed = await db.begin(async (tx) => {
      const now = clock.now();
      const terms = { now, claimedUntil: later(deps, claimMs), expiresAt: later(deps, keptMs) };
      // Sent at once: the record is counted when the usage is read.
      const [isClaimed, usage] = await Promise.all([
        store.claimRecord(tx, place, { claim, requestDigest: requestDigest ?? null, ...terms }),
        store.findUsage(tx, place),
      ]);
      if (isClaimed) requireShare(deps, usage, place);
      return isClaimed;
    });
    if (claimed) return undefined;
    const found = await store.findRecord(db, place);
    if (found === undefined) continue;
    if (requestDigest !== undefined && found.requestDigest?.equals(requestDigest) === false) throw reused();
    if (found.status === null) throw inProgress();
    return { ...found, status: found.status };
  }
  throw inProgress();
}

/** Runs the change for the first time. A failed attempt either stores its error or frees the key. */
async function runFirst(deps: IdempotencyDeps, held: Held, reply: FastifyReply, change: () => Promise<unknown>) {
  const { db, log } = deps;
  const { request, place, claim } = held;
  const renewal = setInterval(() => {
    store
      .renewClaim(db, place, claim, later(deps, claimMs))
      .catch((error) => log.warn({ err: error }, 'Could not renew a claim'));
  }, renewEveryMs).unref();
  let response: Response | undefined;
  try {
    const result = await db.combine(change, async (tx, changed) => {
      response = responseOf(reply, changed);
      await complete(deps, tx, held, response);
    });
    return { result, response };
  } catch (error) {
    // An error from `complete` itself says nothing about the change.
    await (response === undefined && mayKeep(error, request)
      ? db.begin((tx) => complete(deps, tx, held, errorResponse(error, request)))
      : store.releaseClaim(db, place, claim)
    ).catch((cause) => log.warn({ err: cause }, 'Could not end a claim; it will expire'));
    throw error;
  } finally {
    clearInterval(renewal);
  }
}

/** Stores the response in the transaction of the change. */
async function complete(deps: IdempotencyDeps, tx: Db, held: Held, done: Response) {
  const { place, claim, digestOf } = held;
  const stored = {
    status: done.status,
    headers: done.headers,
    body: done.text === null ? null : deps.secrets.wrap(Buffer.from(done.text)),
    requestDigest: digestOf(),
    expiresAt: later(deps, keptMs),
  };
  if ((stored.body?.length ?? 0) > limits.idempotentResponseBytesMax)
    throw invalidField('idempotency-key', `the response is larger than ${limits.idempotentResponseBytesMax} bytes`);
  const [isCompleted, usage] = await Promise.all([
    store.completeRecord(tx, place, claim, stored),
    store.findUsage(tx, place),
  ]);
  if (!isCompleted) throw inProgress();
  requireShare(deps, usage, place);
}

/** 422 if the space or the caller holds more than its share. */
function requireShare(deps: IdempotencyDeps, { records, bytes }: store.Usage, { isWholeApp }: Place): void {
  if (!fitsShare(records, deps.recordsMax, isWholeApp) || !fitsShare(bytes, deps.bytesMax, isWholeApp))
    throw full(deps, records.ofSpace <= deps.recordsMax && bytes.ofSpace <= deps.bytesMax);
}

function later({ clock }: IdempotencyDeps, ms: number): Date {
  return new Date(clock.now().getTime() + ms);
}

/** Where a record belongs, and whether its caller acts for the whole app. */
type Place = store.Place & { isWholeApp: boolean };

type Held = { request: FastifyRequest; place: Place; claim: string; digestOf: () => Buffer };

function callerOf({ identity }: FastifyRequest): IdempotencyCaller {
  if (identity.kind === 'developer-without-app')
    return { appId: nobody, sandboxId: production, name: `developer/${identity.developerId}`, isWholeApp: false };
  if (!('appId' in identity) || identity.kind === 'publishable') throw new Error('The request has no caller.');
  const { appId, sandboxId } = identity;
  return { appId, sandboxId, name: nameCaller(identity), isWholeApp: canSeeWholeApp(identity) };
}

function placeOf(request: FastifyRequest, caller: IdempotencyCaller, key: string): Place {
  const { appId, sandboxId, name, isWholeApp } = caller;
  const path = request.url.split('?', 1)[0];
  const digest = hash('sha256', JSON.stringify([sandboxId, name, request.method, path, key]), 'buffer');
  return { appId, sandboxId, holder: name, isWholeApp, digest };
}

/** Two bodies are equal if their values are equal, whatever the order of members. */
async function digestOfJson(request: FastifyRequest): Promise<Buffer> {
  const { url, body } = request;
  const longTexts = await digestLongTexts(body, appOf(request));
  const text = JSON.stringify([queryOf(url), body ?? null, ...longTexts], (_key, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return hash('sha256', text, 'buffer');
}

function digestOfStream(request: FastifyRequest): Buffer {
  const { url, headers, bodyHash, formDigest } = request;
  if (formDigest !== undefined) return hash('sha256', JSON.stringify([queryOf(url), 'form', formDigest]), 'buffer');
  const body = bodyHash?.digest('hex') ?? '';
  const named = ['content-type', 'x-filename', 'upload-length', 'upload-metadata'].map((name) => headers[name] ?? '');
  return hash('sha256', JSON.stringify([queryOf(url), ...named, body]), 'buffer');
}

function queryOf(url: string): string {
  return url.split('?').slice(1).join('?');
}

/** A form whose parts have not all arrived. */
const incomplete = 'incomplete';

function isForm({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.config.rawBody === 'multipart/form-data';
}

/** Reads the body of a repeated request, to compare it. */
function hashAgain(request: FastifyRequest, bytesMax: number): Promise<Buffer> {
  return isForm(request) ? hashForm(request, bytesMax) : hashStream(request, bytesMax);
}

async function hashForm(request: FastifyRequest, bytesMax: number): Promise<Buffer> {
  request.formDigest = incomplete;
  try {
    await receiveForm(request, async ({ bytes: file }) => {
      let bytes = 0;
      for await (const chunk of file) {
        bytes += chunk.byteLength;
        if (bytes > bytesMax) throw reused();
      }
    });
  } catch (error) {
    request.raw.resume();
    // A form that was refused as a whole the first time is refused again.
    if (!(error instanceof AppError) || request.formDigest === incomplete) throw reused();
  }
  return digestOfStream(request);
}

async function hashStream(request: FastifyRequest, bytesMax: number): Promise<Buffer> {
  const bodyHash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of request.raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) throw reused();
    bodyHash.update(chunk);
  }
  request.bodyHash = bodyHash;
  return digestOfStream(request);
}

function responseOf(reply: FastifyReply, result: unknown): Response {
  if (reply.sent || result === reply) throw new Error('A response that is already sent cannot be stored.');
  const text = result === undefined || result === null ? null : String(reply.serialize(result as object));
  return { status: reply.statusCode, headers: pick(reply.getHeaders()), text };
}

function errorResponse(error: unknown, request: FastifyRequest): Response {
  const appError = toAppError(error, request);
  const { status, body } = presentError(appError, request);
  return { status, headers: pick(appError.headers), text: JSON.stringify(body) };
}

/** Whether a retry must get the same error. A streamed body that was not read to the end cannot be compared. */
function mayKeep(error: unknown, request: FastifyRequest): boolean {
  const { status } = toAppError(error, request);
  const { bodyHash, formDigest, raw } = request;
  const isKnown = formDigest === undefined ? bodyHash === undefined || raw.readableEnded : formDigest !== incomplete;
  return status < 500 && !retriable.has(status) && isKnown;
}

function pick(headers: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    keptHeaders.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
  );
}

function send(reply: FastifyReply, { status, headers, text }: Response): FastifyReply {
  reply.code(status).headers(headers);
  return text === null ? reply.send() : reply.type('application/json; charset=utf-8').send(text);
}

function inProgress(): AppError {
  return new AppError(
    'request_in_progress',
    'A request with this Idempotency-Key is still in progress. Try again shortly.',
    {
      headers: { 'retry-after': '1' },
    },
  );
}

function reused(): AppError {
  return new AppError('idempotency_key_reused', 'This Idempotency-Key was used with another request body.', {
    fields: [{ field: 'idempotency-key', message: 'was used with another body' }],
  });
}

function full({ recordsMax, bytesMax }: IdempotencyDeps, isShare: boolean): AppError {
  const share = isShare ? ', and each user as many of them as remain free' : '';
  const message = `Within 24 hours, an app or a sandbox may use ${recordsMax} values of Idempotency-Key, with responses of ${bytesMax} bytes${share}. Send the request without the header, or try again later.`;
  return new AppError('quota_exceeded', message, {
    fields: [{ field: 'idempotency-key', message: isShare ? 'you have used too many' : 'the app has used too many' }],
    details: { quota: 'idempotency', records_max: recordsMax, bytes_max: bytesMax },
  });
}
