import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/**
 * Collects everything that /metrics shows, in Prometheus' text format. Each server has its own registry, which keeps
 * tests apart.
 */
export class Metrics {
  readonly registry = new Registry();
  #text: Promise<string> | undefined;
  readonly #requests: Histogram<'method' | 'route' | 'status'>;
  readonly #errors: Counter<'method' | 'route' | 'code'>;

  constructor() {
    collectDefaultMetrics({ register: this.registry });
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
    this.#text ??= this.registry.metrics().finally(() => {
      this.#text = undefined;
    });
    return this.#text;
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
