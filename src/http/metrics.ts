import { AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/**
 * Collects everything that /metrics shows, in Prometheus' text format. Each server has its own registry, which keeps
 * tests apart.
 */
export class Metrics {
  readonly registry = new Registry();
  readonly #cells = new Set<Metrics>();
  #text: Promise<string> | undefined;
  readonly #requests: Histogram<'method' | 'route' | 'status'>;
  readonly #errors: Counter<'method' | 'route' | 'code'>;

  /** @param cell the value of the label `cell`, for the metrics of one cell, which the process adds to its own */
  constructor({ cell }: { cell?: string } = {}) {
    if (cell === undefined) collectDefaultMetrics({ register: this.registry });
    else this.registry.setDefaultLabels({ cell });
    // Across several processes, the slowest event loop is the one that matters.
    for (const { name } of this.registry.getMetricsAsArray())
      if (name.startsWith('nodejs_eventloop_lag'))
        Object.assign(this.registry.getSingleMetric(name) as object, { aggregator: 'max' });
    this.#requests = new Histogram({
      name: 'quarry_http_request_duration_seconds',
      help: 'Time from the request to the end of its response',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
      registers: [this.registry],
    });
    this.#errors = this.counter('quarry_http_errors_total', 'Error responses, by code', ['method', 'route', 'code']);
  }

  observeRequest(method: string, route: string, status: number, seconds: number): void {
    this.#requests.observe({ method, route, status: statusClasses[Math.floor(status / 100)] ?? 'other' }, seconds);
  }

  countError(method: string, route: string, code: string): void {
    this.#errors.inc({ method, route, code });
  }

  /** Returns the current text. Concurrent scrapes share one collection. */
  text(): Promise<string> {
    this.#text ??= this.#collect().finally(() => {
      this.#text = undefined;
    });
    return this.#text;
  }

  /** Shows the metrics of a cell beside these. Returns a function that ends this. */
  addCell(cell: Metrics): () => void {
    this.#cells.add(cell);
    return () => this.#cells.delete(cell);
  }

  /** The current values, including those of cells. */
  async snapshot(): Promise<Awaited<ReturnType<Registry['getMetricsAsJSON']>>> {
    if (this.#cells.size === 0) return this.registry.getMetricsAsJSON();
    return (await this.#merge()).getMetricsAsJSON();
  }

  async #collect(): Promise<string> {
    return this.#cells.size === 0 ? this.registry.metrics() : (await this.#merge()).metrics();
  }

  /** A cell that is down must not keep the others from being shown: its values are read with a deadline of their own. */
  async #merge(): Promise<Registry> {
    const all = [this, ...this.#cells].map(({ registry }) => registry.getMetricsAsJSON());
    return AggregatorRegistry.aggregate(await Promise.all(all));
  }

  /** Registers a value that is read at each scrape. */
  gauge(name: string, help: string, read: () => number | Promise<number>, aggregator: Aggregator = 'sum'): void {
    new Gauge({
      name,
      help,
      aggregator,
      registers: [this.registry],
      async collect() {
        this.set(await read());
      },
    });
  }

  /** Registers values by kind and state, read at each scrape. Other kinds and states are not shown. */
  gauges(
    name: string,
    help: string,
    read: () => Promise<{ labels: { kind: string; state: string }; value: number }[]>,
    aggregator: Aggregator = 'sum',
  ): void {
    new Gauge({
      name,
      help,
      aggregator,
      labelNames: ['kind', 'state'],
      registers: [this.registry],
      async collect() {
        const values = await read();
        this.reset();
        for (const { labels, value } of values.slice(0, groupsMax)) this.set(labels, value);
      },
    });
  }

  /** Registers one value for each cell, read at each scrape. */
  gaugeOfCells(name: string, help: string, read: () => Iterable<[cell: string, value: number]>): void {
    new Gauge({
      name,
      help,
      aggregator: 'min',
      labelNames: ['cell'],
      registers: [this.registry],
      collect() {
        this.reset();
        for (const [cell, value] of read()) this.set({ cell }, value);
      },
    });
  }

  counter<T extends string>(name: string, help: string, labelNames: readonly T[] = []): Counter<T> {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }
}

/** How a supervisor combines the values of several processes. `first`: the value is the same in all of them. */
type Aggregator = 'sum' | 'first' | 'min' | 'max';

/** A fixed list of kinds and states per metric, so the output does not grow with the data. */
const groupsMax = 200;

/** A series per status would multiply the series, and error codes have their own counter. */
const statusClasses = ['other', '1xx', '2xx', '3xx', '4xx', '5xx'];
