import type { AppendOptions, PartialState } from './blob-store.ts';

/** Writes one body to one partial blob. */
export type PartialWriter = {
  /** Takes a chunk. Returns the state when more has become durable. */
  take(chunk: Uint8Array): Promise<PartialState | undefined>;
  /** Makes everything written so far durable. */
  flush(): Promise<PartialState>;
};

/** Appends a body. If it breaks off, saves what arrived and then throws its error. */
export async function appendBody(
  writer: PartialWriter,
  body: AsyncIterable<Uint8Array>,
  { save, whole = false }: Pick<AppendOptions, 'save' | 'whole'>,
): Promise<PartialState> {
  const chunks = body[Symbol.asyncIterator]();
  let broken: { error: unknown } | undefined;
  try {
    for (;;) {
      let next: IteratorResult<Uint8Array>;
      try {
        next = await chunks.next();
      } catch (error) {
        if (whole) throw error;
        broken = { error };
        break;
      }
      if (next.done) break;
      const durable = await writer.take(next.value);
      if (durable !== undefined && !whole) await save(durable);
    }
    const state = await writer.flush();
    await save(state);
    if (broken === undefined) return state;
  } finally {
    await chunks.return?.();
  }
  throw broken.error;
}
