/** Yields the `data` of Server-Sent Events. Throws RangeError if the body exceeds `bytesMax`. */
export async function* readEvents(body: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let size = 0;
  let rest = '';
  for await (const part of body) {
    size += part.byteLength;
    if (size > bytesMax) throw new RangeError(`The response is larger than ${bytesMax} bytes.`);
    // The parts of a long line are joined when its end has arrived.
    const lines = (rest + decoder.decode(part, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const data = dataOf(line);
      if (data !== undefined) yield data;
    }
  }
  const data = dataOf(rest);
  if (data !== undefined) yield data;
}

function dataOf(line: string): string | undefined {
  return line.startsWith('data:') ? line.slice(5).trim() : undefined;
}
