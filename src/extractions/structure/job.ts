import type { BlobStore } from '../../blob/blob-store.ts';
import { writeConfigVersion } from '../../configs/store.ts';
import type { Database, Db } from '../../db/database.ts';
import { setEventCause } from '../../events/emit.ts';
import type { FileService } from '../../files/service.ts';
import { announceChange } from '../../http/streams/sse.ts';
import { keepLease } from '../../jobs/lease.ts';
import { addJob } from '../../jobs/queue.ts';
import { taskNames } from '../../jobs/task-names.ts';
import type { Task } from '../../jobs/workers.ts';
import { AppError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { CallOrigin } from '../../llm/origin.ts';
import { GenerationError, type Llm, type TokenBudget } from '../../llm/service.ts';
import { holdTokens } from '../../tenancy/quotas.ts';
import { endExtraction, lockRunningExtraction } from '../store.ts';
import { extractionTopic } from '../topic.ts';
import type { Schemas } from './schemas.ts';
import * as store from './store.ts';
import {
  pieceKeyPrefix,
  type StructureCalls,
  type Structured,
  StructureError,
  structureText,
} from './structure-output.ts';

export type StructureDeps = {
  db: Database;
  blobs: BlobStore;
  files: Pick<FileService, 'store'>;
  log: Logger;
  llm: Llm;
  schemas: Schemas;
  /** The size of the language model's context in tokens. */
  contextTokens: number;
  /** The time limit of one request to the language model. */
  requestMsMax: number;
  /** The token limit of one extraction; 0 means unlimited. */
  tokensMax: number;
};

/** Stored with the job, so its names are public. */
type Payload = { app_id: string; extraction_id: string };

const attemptsMax = 12;
/**
 * The number of outputs of one extraction that are read concurrently, and of its concurrent requests to the language
 * model.
 */
const outputsAtOnce = 4;
const requestsAtOnce = 4;
/** How often a job that waits for the language model checks whether its extraction was deleted. */
const lookEveryMs = 1_000;
const markdownBytesMax = 64 * 1024 * 1024;

/** Starts extracting data from the outputs when this transaction commits. */
export function startStructuring(tx: Db, { appId, id }: store.ExtractionKey): Promise<void> {
  const payload: Payload = { app_id: appId, extraction_id: id };
  return addJob(tx, taskNames.structureExtraction, payload, { key: `structure/${id}`, maxAttempts: attemptsMax });
}

/** The extraction was deleted or has ended. */
class ExtractionGone extends Error {}

/**
 * Extracts the data from the outputs of an extraction, and ends it. Each validated result is stored, so after a crash
 * only the requests in flight are sent again.
 */
export function structureJob(deps: StructureDeps): Task {
  return async (payload, { signal, isLastAttempt, waitOutside }) => {
    const { app_id: appId, extraction_id: id } = payload as Payload;
    const extraction = await store.findRunningStructure(deps.db, { appId, id });
    if (extraction === undefined) return;
    const stop = keepLease({
      ...{ everyMs: lookEveryMs, signal, reason: new ExtractionGone() },
      renew: () => store.isRunning(deps.db, extraction),
      onError: (error) => deps.log.debug({ err: error }, 'Could not check whether an extraction still runs'),
    });
    const ask = limitConcurrency(requestsAtOnce);
    try {
      for (;;) {
        const outputs = await store.listPending(deps.db, extraction, outputsAtOnce);
        if (outputs.length === 0) break;
        const ends = await waitOutside(() =>
          waitForAll(outputs.map((output) => read(deps, extraction, output, { ask, signal: stop.signal }))),
        );
        for (const [index, output] of outputs.entries()) await write(deps, extraction, output, ends[index]);
      }
      await end(deps, extraction);
    } catch (error) {
      if (error instanceof ExtractionGone || stop.signal.reason instanceof ExtractionGone) return;
      if (error instanceof AppError && lastingCodes.has(error.code))
        return await fail(deps, extraction, { code: error.code, message: error.message });
      if (isLastAttempt && !signal.aborted)
        await fail(deps, extraction, { code: 'internal_error', message: 'The data could not be extracted.' });
      throw error;
    } finally {
      stop.end();
    }
  };
}

/** Of errors that would recur: a budget is used up, or the model was removed or has no key. */
const lastingCodes: ReadonlySet<string> = new Set(['token_budget_exceeded', 'invalid_parameters', 'not_implemented']);

type End = Structured | StructureError;
type Reading = { ask: <T>(work: () => Promise<T>) => Promise<T>; signal: AbortSignal };

/** Waits for all of the work even if one piece fails, so that none is left running. */
async function waitForAll<T>(work: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(work);
  return Promise.all(work);
}

/**
 * Returns the data of an output, or why it has none. Throws errors that fail the whole extraction or the job's
 * attempt.
 */
async function read(
  deps: StructureDeps,
  extraction: store.StructureRow,
  output: store.PendingRow,
  { ask, signal }: Reading,
): Promise<End> {
  const { blobKey, size } = output;
  const { appId } = extraction;
  try {
    if (blobKey === null || (size ?? 0) > markdownBytesMax)
      throw new StructureError('extraction_failed', 'The Markdown was deleted, or is too large to be read.');
    const text = Buffer.from(await deps.blobs.readAll(blobKey, markdownBytesMax)).toString();
    const calls: StructureCalls = {
      async begin(pieces) {
        await store.setPieces(deps.db, extraction, output.outputId, pieces);
        await announceChange(deps.db, extractionTopic, appId, extraction.id);
      },
      check: (schema, value) => deps.schemas.findProblems(appId, schema, value),
      ask: (key, question) =>
        ask(async () => {
          signal.throwIfAborted();
          const known = await store.findPart(deps.db, appId, output.outputId, key);
          if (known) return known.result;
          const result = await generate(deps, extraction, question, signal);
          const isPiece = key.startsWith(pieceKeyPrefix);
          await store.insertPart(deps.db, extraction, { outputId: output.outputId, key, result, isPiece });
          await announceChange(deps.db, extractionTopic, appId, extraction.id);
          return result;
        }),
    };
    return await structureText(text, extraction, await contextOf(deps, extraction), calls);
  } catch (error) {
    if (error instanceof StructureError) return error;
    if (error instanceof GenerationError) return new StructureError(error.code, error.message);
    if (deps.schemas.isRefusal(error)) return new StructureError('invalid_schema', error.message);
    throw error;
  }
}

/** The size of the context of the model, or of the smallest model of an alias. */
async function contextOf({ llm, contextTokens }: StructureDeps, extraction: store.StructureRow): Promise<number> {
  if (extraction.model === null) return contextTokens;
  return (await llm.contextTokens(extraction, extraction.model)) ?? contextTokens;
}

function originOf({ appId, sandboxId, id, userId, agentId }: store.StructureRow): CallOrigin {
  return { appId, sandboxId, userId, agentId, extractionId: id };
}

/** Asks one question, including corrections. The deadline applies to each request. */
async function generate(
  deps: StructureDeps,
  extraction: store.StructureRow,
  question: Parameters<StructureCalls['ask']>[1],
  signal: AbortSignal,
): Promise<unknown> {
  const seconds = deps.requestMsMax / 1000;
  const late = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const onRequest = (): void => {
    clearTimeout(timer);
    const error = new StructureError('timeout', `The language model took longer than ${seconds} seconds.`);
    timer = setTimeout(() => late.abort(error), deps.requestMsMax);
  };
  try {
    const { data } = await deps.llm.generate(
      { ...question, temperature: 0, model: extraction.model ?? undefined },
      {
        lane: extraction.appId,
        budget: budgetOf(deps, extraction),
        origin: originOf(extraction),
        onRequest,
        signal: AbortSignal.any([signal, late.signal]),
      },
    );
    return data;
  } finally {
    clearTimeout(timer);
  }
}

/** A killed process leaves its reservation, because it is unknown how much of it was used. */
function budgetOf({ tokensMax }: StructureDeps, extraction: store.StructureRow): TokenBudget {
  const max = tokensMax === 0 ? Number.MAX_SAFE_INTEGER : tokensMax;
  return {
    async reserve(tx, tokens) {
      if (!(await store.useTokens(tx, extraction, tokens, max))) {
        if (!(await store.isRunning(tx, extraction))) throw new ExtractionGone();
        throw new AppError(
          'token_budget_exceeded',
          `An extraction may use ${max} tokens of the language model, and the next request might exceed that.`,
        );
      }
      const ofDay = await holdTokens(tx, extraction, tokens);
      return {
        async settle(later, used) {
          await store.settleTokens(later, extraction, used - tokens);
          await ofDay.settle(later, used);
        },
      };
    },
  };
}

/** Writes the data to a file beside the Markdown, in the transaction that ends the output. */
async function write(
  deps: StructureDeps,
  extraction: store.StructureRow,
  output: store.PendingRow,
  ended: End | undefined,
): Promise<void> {
  if (ended === undefined || ended instanceof StructureError)
    return writeFailure(deps, extraction, output, ended ?? new StructureError('internal_error', 'There is no data.'));
  const { data, spans } = ended;
  const bytes = Buffer.from(`${JSON.stringify({ data, spans }, null, 2)}\n`);
  const filename = (output.filename ?? 'document.md').replace(/(?:\.md)?$/, '.json');
  let stored: Awaited<ReturnType<FileService['store']>> | undefined;
  try {
    stored = await deps.files.store(extraction, { bytes, filename, contentType: 'application/json' });
    const { commit } = stored;
    await deps.db.begin(async (tx) => {
      const locked = await lockRunningExtraction(tx, extraction.appId, extraction.id);
      if (locked === undefined) throw new ExtractionGone();
      const { causeTreeId, causeDepth } = extraction;
      if (causeTreeId !== null) await setEventCause(tx, { treeId: causeTreeId, depth: causeDepth });
      const { orgId, teamId, userId, agentId } = locked;
      const owned = { orgId, teamId, userId, agentId };
      await commit(tx, owned, async (within, file) => {
        const isNew = await store.endData(tx, extraction, output.outputId, {
          state: 'done',
          data,
          spans,
          fileId: file.id,
        });
        if (!isNew) throw new ExtractionGone();
        if (extraction.destinationKind === 'config')
          await writeConfigVersion(within, file, {
            owned,
            virtualPath: file.filename,
            contentType: file.contentType,
            contentHash: file.checksum,
            fileId: file.id,
          });
      });
      await announceChange(tx, extractionTopic, extraction.appId, extraction.id);
    });
  } catch (error) {
    if (error instanceof ExtractionGone || error instanceof AppError) await stored?.discard();
    if (!(error instanceof AppError) || error.code !== 'quota_exceeded') throw error;
    await writeFailure(deps, extraction, output, new StructureError(error.code, error.message));
  }
}

async function writeFailure(
  { db }: StructureDeps,
  extraction: store.StructureRow,
  output: store.PendingRow,
  { code, message }: StructureError,
): Promise<void> {
  await db.begin(async (tx) => {
    if ((await lockRunningExtraction(tx, extraction.appId, extraction.id)) === undefined) throw new ExtractionGone();
    await store.endData(tx, extraction, output.outputId, { state: 'failed', error: { code, message } });
    await announceChange(tx, extractionTopic, extraction.appId, extraction.id);
  });
}

/** Ends the extraction as done if an output has data or there was none to read. */
async function end({ db }: StructureDeps, extraction: store.StructureRow): Promise<void> {
  await db.begin(async (tx) => {
    if ((await lockRunningExtraction(tx, extraction.appId, extraction.id)) === undefined) return;
    const { done, total, error } = await store.findOutcome(tx, extraction);
    const failure = done === 0 && total > 0 && error !== null ? failureOf(error) : undefined;
    await endExtraction(tx, extraction.appId, extraction.id, failure ? 'failed' : 'done', failure);
    await announceChange(tx, extractionTopic, extraction.appId, extraction.id);
  });
}

async function fail({ db }: StructureDeps, extraction: store.StructureRow, error: { code: string; message: string }) {
  await db.begin(async (tx) => {
    await endExtraction(tx, extraction.appId, extraction.id, 'failed', failureOf(error));
    await announceChange(tx, extractionTopic, extraction.appId, extraction.id);
  });
}

function failureOf(error: { code: string; message: string }) {
  const reasons = { timeout: 'timeout', internal_error: 'internal_error' } as const;
  const reason =
    error.code === 'timeout' || error.code === 'internal_error' ? reasons[error.code] : 'extraction_failed';
  return { reason, ...error } as const;
}

/** Runs at most `max` pieces of work concurrently, in order. */
function limitConcurrency(max: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let active = 0;
  return async (work) => {
    if (active >= max) await new Promise<void>((resolve) => waiting.push(resolve));
    else active += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else active -= 1;
    }
  };
}
