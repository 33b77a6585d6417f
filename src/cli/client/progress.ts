import { countOf } from '../count.ts';
import { sanitizeForTerminal } from '../terminal.ts';

/** The parts of a stream that a progress line uses. */
type ProgressStream = { isTTY?: boolean; columns?: number; write(text: string): unknown };

/** A progress line on standard error. Writes nothing unless it is a terminal. */
export class Progress {
  readonly #stream: ProgressStream;
  #shown = false;

  constructor(stream: ProgressStream) {
    this.#stream = stream;
  }

  /** Replaces the line. `share`, between 0 and 1, adds a bar before the text. */
  show(words: string, share?: number): void {
    if (!this.#stream.isTTY) return;
    const text = sanitizeForTerminal(share === undefined ? words : `${drawBar(share)} ${words}`);
    this.#stream.write(`\r\u{1b}[K${text.slice(0, Math.max(20, this.#stream.columns || 80) - 1)}`);
    this.#shown = true;
  }

  /** Clears the line before other output. */
  clear(): void {
    if (this.#shown) this.#stream.write('\r\u{1b}[K');
    this.#shown = false;
  }
}

const barWidth = 20;

function drawBar(share: number): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * barWidth);
  return `[${'#'.repeat(full)}${'-'.repeat(barWidth - full)}]`;
}

/** A number of bytes in readable form. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let size = bytes;
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}

/** Describes a transfer in bytes: its amount, its rate, and the remaining time if the total is known. */
export function describeTransfer(sent: number, total: number | undefined, elapsedMs: number): string {
  const done = `${formatBytes(sent)}${total === undefined ? '' : ` of ${formatBytes(total)}`}`;
  if (elapsedMs < rateAfterMs || sent === 0) return done;
  const perSecond = (sent * 1_000) / elapsedMs;
  const left = total === undefined ? '' : `, ${formatSeconds((total - sent) / perSecond)} left`;
  return `${done}, ${formatBytes(Math.round(perSecond))}/s${left}`;
}

/** Describes the pages that a job has read, their rate since the first call, and the remaining time. */
export class PageCount {
  readonly #now: () => number;
  #first: { done: number; ms: number } | undefined;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  describe(done: number, total: number | undefined): string {
    const ms = this.#now();
    this.#first ??= { done, ms };
    const shown = total ?? done;
    const words = `${total === undefined ? '' : `${done} of `}${countOf(shown, 'page')}`;
    const elapsedMs = ms - this.#first.ms;
    const read = done - this.#first.done;
    if (elapsedMs < rateAfterMs || read === 0) return words;
    const perSecond = (read * 1_000) / elapsedMs;
    const rate = perSecond >= 1 ? `${perSecond.toFixed(1)} pages/s` : `${(perSecond * 60).toFixed(1)} pages/min`;
    const left = total === undefined || total <= done ? '' : `, ${formatSeconds((total - done) / perSecond)} left`;
    return `${words}, ${rate}${left}`;
  }
}

/** No rate is shown before this time: it would measure the start and not the transfer. */
const rateAfterMs = 500;

function formatSeconds(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.ceil(whole / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
