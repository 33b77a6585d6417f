import { Histogram } from 'prom-client';
import type { Metrics } from '../http/metrics.ts';
import type { ObservedCall } from '../llm/complete.ts';

const secondsBuckets = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** Registers the metrics of calls of language models. Returns the function that counts one. */
export function observeModelCalls(metrics: Metrics): (call: ObservedCall) => void {
  const labelNames = ['provider', 'status'] as const;
  const seconds = new Histogram({
    name: 'quarry_model_call_duration_seconds',
    help: 'Time of calls of language models, by provider and how they ended',
    labelNames,
    buckets: secondsBuckets,
    registers: [metrics.registry],
  });
  const firstText = new Histogram({
    name: 'quarry_model_first_token_seconds',
    help: 'Time until the first text of a language model',
    labelNames: ['provider'],
    buckets: secondsBuckets,
    registers: [metrics.registry],
  });
  const tokens = metrics.counter('quarry_model_tokens_total', 'Tokens of language models', ['provider', 'kind']);
  return (call) => {
    const { provider, status } = call;
    seconds.observe({ provider, status }, call.seconds);
    if (call.firstTokenSeconds !== undefined) firstText.observe({ provider }, call.firstTokenSeconds);
    tokens.inc({ provider, kind: 'prompt' }, call.promptTokens);
    tokens.inc({ provider, kind: 'completion' }, call.completionTokens);
  };
}
