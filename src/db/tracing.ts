import { trace } from '../tracing/trace.ts';
import type { Compiled, Result, Row } from './sql.ts';

const wordsMax = 5;
const names = new WeakMap<TemplateStringsArray, string>();
const options = { kind: 'client', attributes: { 'db.system.name': 'postgresql' } } as const;

/** Runs a statement in a span named after its first words. The trace never contains its values. */
export function traceStatement(compiled: Compiled, run: () => Promise<Result<Row[]>>): Promise<Result<Row[]>> {
  return trace(nameOf(compiled.strings), options, run);
}

/** Uses only the text before the first value: what follows may differ from call to call. */
function nameOf(strings: TemplateStringsArray): string {
  let name = names.get(strings);
  if (name === undefined) {
    name = `SQL ${(strings[0] ?? '').trim().split(/\s+/, wordsMax).join(' ')}`;
    names.set(strings, name);
  }
  return name;
}
