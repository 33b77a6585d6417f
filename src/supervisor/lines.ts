/** Passes on whole lines, so that those of several processes do not mix within one. */
export function forwardLines(from: NodeJS.ReadableStream, write: (lines: Buffer) => void): void {
  let rest: Buffer[] = [];
  let restBytes = 0;
  const flush = (more?: Buffer) => {
    if (more !== undefined) rest.push(more);
    if (rest.length > 0) write(Buffer.concat(rest));
    rest = [];
    restBytes = 0;
  };
  from.on('data', (chunk: Buffer) => {
    const end = chunk.lastIndexOf(10) + 1;
    if (end > 0) flush(chunk.subarray(0, end));
    if (end === chunk.length) return;
    rest.push(chunk.subarray(end));
    restBytes += chunk.length - end;
    if (restBytes > lineBytesMax) flush();
  });
  // A killed process may leave half a line.
  from.on('end', () => restBytes > 0 && flush(Buffer.from('\n')));
}

const lineBytesMax = 1024 * 1024;
