/** Data in the page for its scripts: JSON-LD, application state, pieces of a streamed page. */
export type EmbeddedData = { type: string; id: string; text: string };

/** The type of a piece of a stream of React server components. */
export const streamType = 'react-stream';

const assignment = /^\s*(?:(?:var|let|const)\s+|(?:window|self|globalThis)\s*[.[]\s*)["']?[\w$]+["']?\]?\s*=\s*/;
const streamPush = /^\s*(?:\(?self\.__next_f\s*=\s*self\.__next_f\s*\|\|\s*\[\]\)?|self\.__next_f)\.push\(/;
const parseCall = /JSON\.parse\(\s*(?=")/y;

/** The data of a script that only states it: JSON assigned to a variable, or a piece of a streamed page. */
export function stateOfScript(script: string): EmbeddedData | undefined {
  const push = streamPush.exec(script);
  if (push !== null) {
    const piece = parseJson(balanced(script, push[0].length));
    if (!Array.isArray(piece) || piece[0] !== 1 || typeof piece[1] !== 'string') return undefined;
    return { type: streamType, id: '', text: piece[1] };
  }
  const start = assignment.exec(script)?.[0].length;
  if (start === undefined) return undefined;
  parseCall.lastIndex = start;
  const text = parseCall.test(script)
    ? parseJson(script.slice(parseCall.lastIndex, endOfString(script, parseCall.lastIndex)))
    : balanced(script, start);
  return typeof text === 'string' && text !== '' ? { type: 'application/json', id: '', text } : undefined;
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The object or array that begins at `from`, to its closing bracket. Empty when it does not end. */
function balanced(text: string, from: number): string {
  if (text[from] !== '{' && text[from] !== '[') return '';
  const mark = /["{}[\]]/g;
  mark.lastIndex = from;
  let depth = 0;
  for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
    if (found[0] === '"') mark.lastIndex = endOfString(text, found.index);
    else depth += found[0] === '{' || found[0] === '[' ? 1 : -1;
    if (depth === 0) return text.slice(from, found.index + 1);
  }
  return '';
}

function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}
