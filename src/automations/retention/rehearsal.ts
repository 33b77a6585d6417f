import type { MadeFile, Removed } from './file-store.ts';

/**
 * What a dry run would have deleted so far in an app. Runs of several batches may share files and extractions, which go
 * with the last of these runs; in the database, all of them still exist.
 */
export class Rehearsal {
  readonly #runs = new Set<string>();
  readonly #extractions = new Set<string>();
  /** The files that were passed on to other runs, with the runs and extractions that still keep them. */
  readonly #passed = new Map<string, { runs: Set<string>; extractions: readonly string[] }>();
  /** The files that were passed on, by run. */
  readonly #passedTo = new Map<string, Set<string>>();

  isGone(run: string): boolean {
    return this.#runs.has(run);
  }

  /** Notes that a batch would be deleted. Returns the number of files that go with it. @param made undefined: files stay */
  remove({ runs, extractions }: Removed, made: readonly MadeFile[] | undefined): number {
    for (const run of runs) this.#runs.add(run);
    for (const extraction of extractions) this.#extractions.add(extraction);
    const taken = this.#takeOver(runs);
    if (made === undefined) return 0;
    let count = [...taken.values()].filter((usedBy) => this.#areGone(usedBy)).length;
    for (const { id, runs: namedBy, extractions: usedBy } of made) {
      // Another run that made it, too, has passed it on already.
      if (taken.has(id) || this.#passed.has(id)) continue;
      const left = namedBy.filter((run) => !this.#runs.has(run));
      if (left.length > 0) this.#pass(id, left, usedBy);
      else if (this.#areGone(usedBy)) count += 1;
    }
    return count;
  }

  #areGone(extractions: readonly string[]): boolean {
    return extractions.every((id) => this.#extractions.has(id));
  }

  #pass(file: string, runs: readonly string[], extractions: readonly string[]): void {
    this.#passed.set(file, { runs: new Set(runs), extractions });
    for (const run of runs) {
      const files = this.#passedTo.get(run) ?? new Set();
      this.#passedTo.set(run, files.add(file));
    }
  }

  /** Removes the runs from the files that were passed on to them. Returns those of which they were the last, with what uses them. */
  #takeOver(runs: readonly string[]): Map<string, readonly string[]> {
    const last = new Map<string, readonly string[]>();
    for (const run of runs) {
      for (const file of this.#passedTo.get(run) ?? []) {
        const passed = this.#passed.get(file);
        passed?.runs.delete(run);
        if (passed?.runs.size !== 0) continue;
        this.#passed.delete(file);
        last.set(file, passed.extractions);
      }
      this.#passedTo.delete(run);
    }
    return last;
  }
}
