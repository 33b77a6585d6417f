import { AggregatorRegistry, type MetricObject, type Registry } from 'prom-client';

/** The metrics of one process, as its registry returns them. */
export type Snapshot = Awaited<ReturnType<Registry['getMetricsAsJSON']>>;

/**
 * Adds up the metrics of several processes. Counters never fall: what a process counted until its last snapshot stays
 * in the sum after its end.
 */
export class FleetMetrics {
  readonly #latest = new Map<number, Snapshot>();
  #ended: Snapshot = [];

  /** @param pid of the process. */
  keep(pid: number, snapshot: Snapshot): void {
    this.#latest.set(pid, snapshot);
  }

  async end(pid: number): Promise<void> {
    const last = this.#latest.get(pid);
    this.#latest.delete(pid);
    if (last === undefined) return;
    const counts = last.filter(({ type }) => accumulating.has(String(type)));
    this.#ended = await AggregatorRegistry.aggregate([this.#ended, counts]).getMetricsAsJSON();
  }

  /** The sum, in Prometheus' text format. */
  text(): Promise<string> {
    return AggregatorRegistry.aggregate(keepFirst([...this.#latest.values(), this.#ended])).metrics();
  }
}

const accumulating = new Set(['counter', 'histogram']);

/** Keeps a metric that is the same in every process only once: mixed snapshots of it would count a moved job twice. */
function keepFirst(snapshots: Snapshot[]): Snapshot[] {
  const seen = new Set<string>();
  return snapshots.map((snapshot) =>
    snapshot.filter(({ name, aggregator }: MetricObject) => {
      if (String(aggregator) !== 'first') return true;
      const isFirst = !seen.has(name);
      seen.add(name);
      return isFirst;
    }),
  );
}
