import { freeBytes } from '../lib/single-use-bytes.ts';

/** What the driver uses of a socket to read from it. */
type Source = { on(event: string, listener: (...values: never[]) => void): unknown };
type Take = (bytes: Buffer) => void;

/** A code and the length of the rest, itself included (PostgreSQL's protocol). */
const codeBytes = 1;
const headerBytes = codeBytes + 4;

/**
 * A source that passes on whole messages of the database. The driver would collect one that arrives in many chunks in
 * buffers that double until it fits, and leave them and the chunks to the garbage collector: 6 MB for a value of 1 MB.
 * Here, the message has one buffer. It is freed when the listener has read it, like each chunk that has a part of it.
 */
export function wholeMessagesOf(source: Source): Source {
  return {
    on: (event, listener) => source.on(event, event === 'data' ? gatherMessages(listener as Take) : listener),
  };
}

/** Returns a function that takes the chunks, which nothing else may use, and calls `take` with whole messages. */
export function gatherMessages(take: Take): Take {
  /** The beginning of a message whose length is not known yet. */
  let header: Buffer | undefined;
  /** A message of which `filled` bytes have arrived. */
  let message: Buffer | undefined;
  let filled = 0;

  /** Returns what follows the message in the bytes. */
  function fill(whole: Buffer, bytes: Buffer): Buffer {
    const copied = bytes.copy(whole, filled);
    filled += copied;
    if (filled === whole.length) {
      message = undefined;
      take(whole);
      freeBytes(whole);
    }
    return bytes.subarray(copied);
  }

  function read(bytes: Buffer): void {
    const rest = message === undefined ? bytes : fill(message, bytes);
    const end = endOfWhole(rest);
    if (end > 0) take(rest.subarray(0, end));
    if (end === rest.length) return;
    const begun = rest.subarray(end);
    if (begun.length < headerBytes) {
      header = Buffer.from(begun);
      return;
    }
    message = Buffer.allocUnsafeSlow(sizeAt(begun, 0));
    filled = 0;
    fill(message, begun);
  }

  return (chunk) => {
    const bytes = header === undefined ? chunk : Buffer.concat([header, chunk]);
    header = undefined;
    const isPart = message !== undefined;
    read(bytes);
    if (isPart || message !== undefined) freeBytes(bytes);
  };
}

/** Where the last whole message ends. */
function endOfWhole(bytes: Buffer): number {
  let at = 0;
  while (at + headerBytes <= bytes.length && at + sizeAt(bytes, at) <= bytes.length) at += sizeAt(bytes, at);
  return at;
}

function sizeAt(bytes: Buffer, at: number): number {
  return codeBytes + bytes.readUInt32BE(at + codeBytes);
}
