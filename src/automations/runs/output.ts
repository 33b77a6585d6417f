import type { Database } from '../../db/database.ts';
import type { Log, LogSource } from '../../http/streams/log-stream.ts';
import type { Logger } from '../../lib/log.ts';
import { filterExisting } from '../../tenancy/visible.ts';
import type { GenerationAttempt } from '../nodes/kind.ts';
import { appendOutput, type OutputPart, type OutputRow, type RunKey, readOutput } from './generation-store.ts';
import { hidesPayloads } from './invoker.ts';
import { findRuns, isTerminal } from './store.ts';
import { filterVisibleRuns } from './visible-store.ts';

/** The topic of the output log in notifications, as `appendOutput` sends it. */
export const outputTopic = 'run_output';

/** A part is written after this time, or earlier once it has this many characters. */
const partMs = 100;
const partCharactersMax = 4_096;

/** Stores the text of the language model while it is generated, for readers of the run's output. */
export class OutputWriter {
  readonly #write: (parts: OutputPart[]) => Promise<void>;
  readonly #of: GenerationAttempt;
  #parts: OutputPart[] = [];
  /** Text that is not yet shown, because it may end with the beginning of a secret. */
  #rest = '';
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor({ db, log }: { db: Database; log: Logger }, run: RunKey, of: GenerationAttempt) {
    this.#of = of;
    this.#write = (parts) =>
      // The node must not fail if the database is unavailable: readers miss a part, but the journal has the whole text.
      appendOutput(db, run, of, parts).catch((error) =>
        log.warn({ err: error, run: run.id }, 'Could not store the output of a run for its readers'),
      );
  }

  /** Starts a request: the text that was shown for this attempt is replaced. */
  start(): void {
    this.#rest = '';
    this.#add({ kind: 'started', text: '' });
  }

  text(text: string): void {
    const { done, rest } = this.#of.redactBeginning(this.#rest + text);
    this.#rest = rest;
    if (done !== '') this.#add({ kind: 'text', text: done });
  }

  /** Stores the rest. Resolves when everything is written. */
  async end(): Promise<void> {
    const last = this.#of.redact(this.#rest);
    this.#rest = '';
    if (last !== '') this.#add({ kind: 'text', text: last });
    this.#add({ kind: 'ended', text: '' });
    this.#flush();
    await this.#writing;
  }

  #add(part: OutputPart): void {
    const last = this.#parts.at(-1);
    if (part.kind === 'text' && last?.kind === 'text') last.text += part.text;
    else this.#parts.push({ ...part });
    if ((this.#parts.at(-1)?.text.length ?? 0) >= partCharactersMax) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), partMs);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const parts = this.#parts.splice(0);
    if (parts.length > 0) this.#writing = this.#writing.then(() => this.#write(parts));
  }
}

/** The log behind streams of a run's output: the parts that are kept, then each new part. Ends with the run. */
export function outputLog(db: Database): LogSource {
  async function readParts(run: { appId: string; id: string }, after = 0): Promise<Log | undefined> {
    const output = await readOutput(db, run, after);
    if (output === undefined) return undefined;
    const { position, rows, keptAfter, status } = output;
    const isKept = after >= keptAfter && after <= position;
    return { position, entries: isKept ? rows.map(presentPart) : undefined, ended: isTerminal({ status }) };
  }

  return {
    from: 0,
    endsWith: 'run',
    readsMax: 1,
    readLogs: (appId, reads) => Promise.all(reads.map(({ id, after }) => readParts({ appId, id }, after))),
    filterExisting: (runs) => filterExisting(db, 'automation_runs', runs),
    async filterVisible(caller, ids) {
      const visible = await filterVisibleRuns(db, caller, ids);
      const runs = await findRuns(db, caller.appId, visible);
      return runs.filter((run) => !hidesPayloads(caller, run)).map(({ id }) => id);
    },
  };
}

const eventOf = { started: 'generation_started', text: 'generation_text', ended: 'generation_ended' } as const;

function presentPart({ position, kind, text, nodeId, commandId, attempt }: OutputRow) {
  const of = { node_id: nodeId, command_id: commandId, attempt };
  return { position, event: eventOf[kind], key: nodeId, data: kind === 'text' ? { ...of, text } : of };
}
