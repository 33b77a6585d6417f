/**
 * Finds the JSON value in a model's output, even within a code fence or between sentences. Undefined if there is
 * none.
 */
export function readJsonOutput(text: string): unknown {
  for (const part of candidatesOf(text)) {
    try {
      return JSON.parse(part);
    } catch {
      // Not JSON: try the next candidate.
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
