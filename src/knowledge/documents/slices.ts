/** Bytes of a text, shortened so that no character is cut. `around` starts at `from`, and reaches beyond both ends. */
export function cutBytes(around: Buffer, from: number, start: number, end: number) {
  let first = start - from;
  while (first < around.length && isContinuation(around[first])) first += 1;
  let last = Math.max(first, end - from);
  while (last > first && last < around.length && isContinuation(around[last])) last -= 1;
  return {
    content: around.subarray(first, last).toString(),
    start_byte: from + first,
    end_byte: from + last,
  };
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** Whole lines with their line breaks; empty past the end. */
export function cutLines(text: string, totalLines: number, offset: number, limit: number) {
  let start = 0;
  for (let line = 1; line < offset && start < text.length; line++) {
    const end = text.indexOf('\n', start);
    start = end < 0 ? text.length : end + 1;
  }
  let end = start;
  for (let line = 0; line < limit && end < text.length; line++) {
    const next = text.indexOf('\n', end);
    end = next < 0 ? text.length : next + 1;
  }
  const startLine = Math.min(offset, totalLines + 1);
  return {
    content: text.slice(start, end),
    start_line: startLine,
    end_line: Math.min(startLine + limit - 1, totalLines),
  };
}
