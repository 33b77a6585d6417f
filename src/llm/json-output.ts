/** The JSON value that a model wrote, also within a fence or between sentences; undefined when there is none. */
export function readJsonOutput(text: string): unknown {
  for (const part of candidatesOf(text)) {
    try {
      return JSON.parse(part);
    } catch {
      // The next candidate may be JSON.
    }
  }
  return undefined;
}

function* candidatesOf(text: string): Generator<string> {
  yield text;
  const fence = text.indexOf('```');
  const fenceEnd = text.indexOf('```', fence + 3);
  if (fence >= 0 && fenceEnd > 0) yield text.slice(text.indexOf('\n', fence), fenceEnd);
  for (const [open, close] of ['{}', '[]'])
    if (open !== undefined && close !== undefined && text.includes(open))
      yield text.slice(text.indexOf(open), text.lastIndexOf(close) + 1);
}
