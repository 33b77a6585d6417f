/** One operation of a history: when it was sent, when its response arrived, and what the response says. */
export type RecordedOperation<State> = {
  sentAt: number;
  /**
   * `Number.POSITIVE_INFINITY` if no response arrived: the operation may have taken effect at any later time, or
   * never.
   */
  answeredAt: number;
  /** The state after the operation, or `impossible` if its response cannot come from this state. */
  apply(state: State): State | typeof impossible;
};

export const impossible = Symbol('impossible');

/**
 * Whether some order explains a history: an order that keeps the real-time order of operations that did not overlap,
 * and in which each response follows from the state before it. Uses Wing and Gong's search with Lowe's cache of
 * visited states (Testing and verifying concurrent objects, 1993; Testing for linearizability, 2017).
 * @param history operations on one object, in any order. The search is exponential in how many overlap, not in the
 * length.
 * @param initial the state before. States must be equal exactly if their JSON is.
 */
export function isLinearizable<State>(history: RecordedOperation<State>[], initial: State): boolean {
  const operations = history.toSorted((a, b) => a.sentAt - b.sentAt);
  const answered = operations.filter(({ answeredAt }) => answeredAt !== Number.POSITIVE_INFINITY);
  const seen = new Set<string>();
  const ordered = new Set<RecordedOperation<State>>();

  const search = (state: State): boolean => {
    if (answered.every((operation) => ordered.has(operation))) return true;
    const place = `${operations.map((operation) => (ordered.has(operation) ? 1 : 0)).join('')} ${JSON.stringify(state)}`;
    if (seen.has(place)) return false;
    seen.add(place);
    const open = operations.filter((operation) => !ordered.has(operation));
    // An operation sent after another one's response cannot come before it.
    const firstAnswer = Math.min(...open.map(({ answeredAt }) => answeredAt));
    for (const operation of open) {
      if (operation.sentAt > firstAnswer) break;
      const next = operation.apply(state);
      if (next === impossible) continue;
      ordered.add(operation);
      if (search(next)) return true;
      ordered.delete(operation);
    }
    return false;
  };
  return search(initial);
}
