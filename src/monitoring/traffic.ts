import { Histogram } from 'prom-client';
import { BlobChecksumMismatch, BlobMissing, type BlobStore, BlobTooLarge } from '../blob/blob-store.ts';
import { FetchError } from '../content/fetch/errors.ts';
import type { Fetcher } from '../content/fetch/guarded-fetch.ts';
import type { Metrics } from '../http/metrics.ts';

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

function histogram<T extends string>(metrics: Metrics, name: string, help: string, labelNames: readonly T[]) {
  return new Histogram({ name, help, labelNames, buckets, registers: [metrics.registry] });
}

/** Counts the requests of a fetcher: how they ended, and how long their responses took to begin. */
export function observeFetcher(metrics: Metrics, fetcher: Fetcher): Fetcher {
  const seconds = histogram(
    metrics,
    'quarry_fetch_duration_seconds',
    'Time until the response to a request for a URL from outside began, by class of status or reason of the failure',
    ['outcome'],
  );
  return {
    ...fetcher,
    async fetch(url, options) {
      const startedAt = performance.now();
      const count = (outcome: string) => seconds.observe({ outcome }, (performance.now() - startedAt) / 1_000);
      try {
        const response = await fetcher.fetch(url, options);
        count(`${Math.floor(response.status / 100)}xx`);
        return response;
      } catch (error) {
        count(error instanceof FetchError ? error.code : 'failed');
        throw error;
      }
    },
  };
}

/** Counts what is read and written in a blob store. */
export function observeBlobs(metrics: Metrics, blobs: BlobStore): BlobStore {
  const seconds = histogram(
    metrics,
    'quarry_blob_duration_seconds',
    'Time of operations on the contents of files: for put with the body, for read until the first bytes',
    ['store', 'operation', 'outcome'],
  );
  async function timed<T>(operation: string, run: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const count = (outcome: string) =>
      seconds.observe({ store: blobs.kind, operation, outcome }, (performance.now() - startedAt) / 1_000);
    try {
      const result = await run();
      count('succeeded');
      return result;
    } catch (error) {
      count(outcomeOf(error));
      throw error;
    }
  }
  return {
    ...blobs,
    put: (key, body, options) => timed('put', () => blobs.put(key, body, options)),
    read: (key, range) => timed('read', () => blobs.read(key, range)),
    readAll: (key, sizeMax) => timed('read_all', () => blobs.readAll(key, sizeMax)),
    stat: (key) => timed('stat', () => blobs.stat(key)),
    remove: (key) => timed('remove', () => blobs.remove(key)),
  };
}

/** A body that is too large or not the one that was announced is not a failure of the store. */
function outcomeOf(error: unknown): string {
  if (error instanceof BlobMissing) return 'missing';
  return error instanceof BlobTooLarge || error instanceof BlobChecksumMismatch ? 'refused' : 'failed';
}

/** A search that has ended. */
export type ObservedSearch = { mode: string; seconds: number; withoutVectors: boolean; withoutReranker: boolean };

/** Returns the function that counts a search. */
export function observeSearches(metrics: Metrics): (search: ObservedSearch) => void {
  const seconds = histogram(metrics, 'quarry_search_duration_seconds', 'Time of searches, by mode', ['mode']);
  const without = metrics.counter(
    'quarry_search_degraded_total',
    'Searches that did without the vector of their query or without the reranker',
    ['without'],
  );
  return (search) => {
    seconds.observe({ mode: search.mode }, search.seconds);
    if (search.withoutVectors) without.inc({ without: 'vectors' });
    if (search.withoutReranker) without.inc({ without: 'reranker' });
  };
}

/** Returns the function that counts an attempt to deliver to a webhook. */
export function observeDeliveries(metrics: Metrics): (outcome: string, seconds: number) => void {
  const seconds = histogram(
    metrics,
    'quarry_webhook_attempt_duration_seconds',
    'Time of attempts to deliver to webhooks: delivered, or the reason of the failure',
    ['outcome'],
  );
  return (outcome, time) => seconds.observe({ outcome }, time);
}
