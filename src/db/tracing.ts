import { trace } from '../tracing/trace.ts';
import type { Compiled, Result, Row } from './sql.ts';

const wordsMax = 5;
const names = new WeakMap<TemplateStringsArray, string>();
const options = { kind: 'client', attributes: { 'db.system.name': 'postgresql' } } as const;

/** Runs a statement in a span named for its first words. Its values are nowhere in the trace. */
export function traceStatement(compiled: Compiled, run: () => Promise<Result<Row[]>>): Promise<Result<Row[]>> {
  return trace(nameOf(compiled.strings), options, run);
}

/** From the text before the first value: what is inserted into a statement is not part of its name. */
function nameOf(strings: TemplateStringsArray): string {
  let name = names.get(strings);
  if (name === undefined) {
    name = `SQL ${(strings[0] ?? '').trim().split(/\s+/, wordsMax).join(' ')}`;
    names.set(strings, name);
  }
  return name;
}
