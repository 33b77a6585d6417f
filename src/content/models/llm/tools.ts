import { storableText } from '../../../lib/storable-text.ts';

/* What a language model may call, and what it asked for. */

/** A tool as the model sees it. `parameters` is a JSON Schema of an object. */
export type ToolDefinition = { name: string; description: string; parameters: unknown };

/** One call that a model asked for. */
export type ToolCall = {
  id: string;
  name: string;
  /** What the model wrote: JSON, if it wrote what it was asked for. */
  arguments: string;
  /** What the provider needs back with the call, unread. */
  providerData?: Record<string, unknown>;
};

/** A model may ask for this many calls in one response; further ones are dropped with the text beyond its limit. */
const callsMax = 128;
const nameCharactersMax = 200;

/** Part of a call, as streams of chat completions carry it. */
export type ToolCallPart = { index: number; id?: string; name?: string; arguments?: string };

/** The calls of one response, whose parts arrive interleaved. */
export class ToolCalls {
  readonly #byIndex = new Map<number, { id: string; name: string; arguments: string }>();
  /** Characters of all arguments. */
  characters = 0;

  /** Returns false if it is the part of one call too many. */
  add(part: ToolCallPart): boolean {
    const known = this.#byIndex.get(part.index);
    if (known === undefined && this.#byIndex.size >= callsMax) return false;
    const call = known ?? { id: '', name: '', arguments: '' };
    // Some servers repeat the id and the name with every part.
    if (call.id === '') call.id = part.id ?? '';
    if (call.name === '') call.name = (part.name ?? '').slice(0, nameCharactersMax);
    call.arguments += part.arguments ?? '';
    this.characters += part.arguments?.length ?? 0;
    this.#byIndex.set(part.index, call);
    return true;
  }

  /** The calls in the order of the response. One without an id, or with that of another, gets its own. */
  list(): ToolCall[] {
    return withOwnIds([...this.#byIndex].toSorted(([a], [b]) => a - b).map(([, call]) => call));
  }
}

/** The calls as they can be stored and sent back: each with its own id, without characters that cannot be stored. */
export function withOwnIds(calls: readonly ToolCall[]): ToolCall[] {
  const ids = new Set<string>();
  return calls.map((call, index) => {
    const id = call.id === '' || ids.has(call.id) ? `call_${index}` : storableText(call.id.slice(0, nameCharactersMax));
    ids.add(id);
    return { ...call, id, name: storableText(call.name), arguments: storableText(call.arguments) };
  });
}
