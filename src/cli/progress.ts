/** What a progress line needs of the stream that it is drawn on. */
type ProgressStream = { isTTY?: boolean; columns?: number; write(text: string): unknown };

/** One line on standard error that shows how far something is. On anything but a terminal it writes nothing. */
export class Progress {
  readonly #stream: ProgressStream;
  #shown = false;

  constructor(stream: ProgressStream) {
    this.#stream = stream;
  }

  /** Replaces the line. `share` between 0 and 1 draws a bar before the words. */
  show(words: string, share?: number): void {
    if (!this.#stream.isTTY) return;
    const text = share === undefined ? words : `${bar(share)} ${words}`;
    this.#stream.write(`\r\u{1b}[K${text.slice(0, Math.max(20, this.#stream.columns || 80) - 1)}`);
    this.#shown = true;
  }

  /** Takes the line away, before anything else is written. */
  clear(): void {
    if (this.#shown) this.#stream.write('\r\u{1b}[K');
    this.#shown = false;
  }
}

const barWidth = 20;

function bar(share: number): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * barWidth);
  return `[${'#'.repeat(full)}${'-'.repeat(barWidth - full)}]`;
}

/** A number of bytes for people. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}
