import type * as Api from '@opentelemetry/api';
import type * as Exporter from '@opentelemetry/exporter-trace-otlp-http';
import type * as Resources from '@opentelemetry/resources';
import type * as Sdk from '@opentelemetry/sdk-trace';
import { type Config, ConfigError } from '../config/config.ts';
import { openAddOn } from '../lib/add-ons.ts';
import type { Logger } from '../lib/log.ts';
import { version } from '../lib/version.ts';
import { setTracing } from './trace.ts';

/** The number of spans that may wait to be sent. Further spans are dropped. */
const waitingSpansMax = 4_096;
const spansPerRequestMax = 512;
const sendEveryMs = 2_000;
const sendTimeoutMs = 3_000;
const requestsMax = 2;
const attributeCharactersMax = 256;
const eventsOfSpanMax = 256;

/**
 * Starts to record spans and send them to the collector. Returns a function that sends the rest and stops, or
 * undefined if tracing is off.
 */
export function startTracing(config: Config, log: Logger): (() => Promise<void>) | undefined {
  if (config.otlpEndpoint === undefined) return undefined;
  const { api, sdk, resources } = loadPackages(config);
  const provider = new sdk.TracerProvider({
    resource: resources.resourceFromAttributes({
      'service.name': config.otlpServiceName,
      'service.version': version,
      'service.instance.id': String(process.pid),
      'quarry.role': config.role,
    }),
    // Decides by the trace id alone, so every process decides the same way, and no caller can ask for more.
    sampler: new sdk.TraceIdRatioBasedSampler(config.otlpSampleRatio),
    spanLimits: { attributeValueLengthLimit: attributeCharactersMax, eventCountLimit: eventsOfSpanMax },
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: reportFailures(createExporter(config), log),
        maxQueueSize: waitingSpansMax,
        maxExportBatchSize: spansPerRequestMax,
        scheduledDelayMillis: sendEveryMs,
        exportTimeoutMillis: sendTimeoutMs,
      }),
    ],
  });
  setTracing({ api, tracer: provider.getTracer('quarry', version) });
  log.info({ endpoint: new URL(config.otlpEndpoint).host, ratio: config.otlpSampleRatio }, 'Tracing is on');
  return async () => {
    setTracing(undefined);
    await provider.shutdown();
  };
}

/** Creates the client of the collector. */
export function createExporter(config: Config): Exporter.OTLPTraceExporter {
  const { exporter } = loadPackages(config);
  return new exporter.OTLPTraceExporter({
    url: `${config.otlpEndpoint}/v1/traces`,
    headers: readHeaders(config.otlpHeaders ?? ''),
    timeoutMillis: sendTimeoutMs,
    concurrencyLimit: requestsMax,
  });
}

/** Logs when sending starts to fail and when it works again, not every failure. */
function reportFailures(exporter: Sdk.SpanExporter, log: Logger): Sdk.SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const failed = result.code !== 0;
        if (failed && !isFailing) log.warn({ err: result.error }, 'Traces cannot be sent to the collector');
        if (!failed && isFailing) log.info('Traces are sent to the collector again');
        isFailing = failed;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}

function loadPackages({ dataDir }: Config) {
  const load = openAddOn('tracing', dataDir);
  return {
    api: load('@opentelemetry/api') as typeof Api,
    sdk: load('@opentelemetry/sdk-trace') as typeof Sdk,
    resources: load('@opentelemetry/resources') as typeof Resources,
    exporter: load('@opentelemetry/exporter-trace-otlp-http') as typeof Exporter,
  };
}

/** Parses `name=value,name=value`, each value percent-encoded, as OpenTelemetry defines it. */
function readHeaders(text: string): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const pair of text.split(',')) {
    if (pair.trim() === '') continue;
    const [, name, value] = /^\s*([\w-]+)\s*=\s*([^\s].*?)\s*$/.exec(pair) ?? [];
    if (name === undefined || value === undefined)
      throw new ConfigError(['OTEL_EXPORTER_OTLP_HEADERS must be name=value pairs, separated by commas']);
    try {
      headers[name] = decodeURIComponent(value);
    } catch {
      throw new ConfigError([`OTEL_EXPORTER_OTLP_HEADERS: the value of ${name} is not percent-encoded correctly`]);
    }
  }
  return headers;
}
