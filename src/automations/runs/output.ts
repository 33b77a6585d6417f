import type { Database } from '../../db/database.ts';
import type { Log, LogSource } from '../../http/log-stream.ts';
import type { Logger } from '../../log.ts';
import type { GenerationAttempt } from '../nodes/kind.ts';
import { appendOutput, type OutputPart, type OutputRow, type RunKey, readOutput } from './generation-store.ts';
import { hidesPayloads } from './invoker.ts';
import { findRuns, isTerminal } from './store.ts';
import { filterVisibleRuns } from './visible-store.ts';

/** The kind of the log in notifications: appendOutput names it. */
export const outputTopic = 'run_output';

/** A part is written after this time, or earlier when it is this long. */
const partMs = 100;
const partCharactersMax = 4_096;

/** Writes a text while the language model writes it, for the readers of the run's output. */
export class OutputWriter {
  readonly #write: (parts: OutputPart[]) => Promise<void>;
  readonly #of: GenerationAttempt;
  #parts: OutputPart[] = [];
  /** Not yet shown: a secret may have begun in it. */
  #rest = '';
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor({ db, log }: { db: Database; log: Logger }, run: RunKey, of: GenerationAttempt) {
    this.#of = of;
    this.#write = (parts) =>
      // The journal has the whole text: what readers miss while the database is gone is not worth the node.
      appendOutput(db, run, of, parts).catch((error) => log.warn({ err: error, run: run.id }, 'Could not show output'));
  }

  /** A request begins: what was shown of this attempt is replaced by what follows. */
  start(): void {
    this.#rest = '';
    this.#add({ kind: 'started', text: '' });
  }

  text(text: string): void {
    const { done, rest } = this.#of.redactBeginning(this.#rest + text);
    this.#rest = rest;
    if (done !== '') this.#add({ kind: 'text', text: done });
  }

  /** Shows the rest. Resolves when everything is written. */
  async end(): Promise<void> {
    const last = this.#of.redactText(this.#rest);
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

/** How streams show the texts of a run: all that is kept, then each part as it is written. Ends with the run. */
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
