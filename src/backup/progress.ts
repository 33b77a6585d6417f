/** Reports progress as lines, at a limited rate. */
export class Progress {
  readonly #write: (line: string) => void;
  #saidAt = performance.now();

  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  report(line: string): void {
    this.#saidAt = performance.now();
    this.#write(line);
  }

  /** The line is built only when one is due. */
  reportAtIntervals(line: () => string): void {
    if (performance.now() - this.#saidAt >= everyMs) this.report(line());
  }
}

const everyMs = 2_000;

export function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
