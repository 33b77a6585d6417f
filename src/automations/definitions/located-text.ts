import { isMap, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { findYamlExcess, readYamlValue } from './yaml-value.ts';

/** A position in a text. Lines and columns count from 1. */
export type Position = { line: number; column: number };

/** The value of a YAML or JSON text, and the position of each of its parts. */
type LocatedText = {
  value: unknown;
  /** The position of the value at a path, or of the nearest existing value around it. */
  locate(path: readonly (string | number)[]): Position;
};

const problemsMax = 100;

/** Parses YAML or JSON. Without `text`, there are problems, of which the first 100 are returned. */
export function readLocatedText(text: string): {
  text?: LocatedText;
  problems: (Position & { message: string })[];
} {
  const lines = new LineCounter();
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const invalid = (faults: { offset: number; message: string }[]) => ({
    problems: faults.map(({ offset, message }) => ({ ...at(offset), message })),
  });
  const excess = findYamlExcess(text);
  if (excess !== undefined) {
    addLines(lines, text.slice(0, excess.offset));
    return invalid([excess]);
  }
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  if (document.errors.length > 0)
    return invalid(document.errors.slice(0, problemsMax).map(({ pos, message }) => ({ offset: pos[0], message })));
  const { value, problems } = readYamlValue(document);
  if (problems.length > 0) return invalid(problems);
  const contents: unknown = document.contents;
  return { text: { value, locate: (path) => at(offsetOf(contents, path)) }, problems: [] };
}

function addLines(lines: LineCounter, text: string): void {
  lines.addNewLine(0);
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines.addNewLine(at + 1);
}

function offsetOf(contents: unknown, path: readonly (string | number)[]): number {
  let offset = startOf(contents);
  let node = contents;
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.find((item) => String((item.key as { value?: unknown } | null)?.value) === String(step));
      if (!pair) break;
      offset = startOf(pair.key) ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      const item: unknown = node.items[Number(step)];
      if (item === undefined) break;
      offset = startOf(item) ?? offset;
      node = item;
    } else break;
  }
  return offset ?? 0;
}

function startOf(node: unknown): number | undefined {
  return typeof node === 'object' && node !== null ? (node as Partial<Node>).range?.[0] : undefined;
}
