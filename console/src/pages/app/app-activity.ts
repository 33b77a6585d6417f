import { useQueries } from '@tanstack/react-query';
import { call } from '../../api/client.ts';

/** How one app is doing in production: its traffic of the last weeks, and what needs a person. */
export type AppActivity = {
  requests: number;
  refused: number;
  byDay: Map<string, number>;
  /** Runs that failed in the last day, at most `failedMax`. */
  failed: number;
  waiting: number;
  tokens: number;
  cost: number;
  bytes: number;
};

export const failedMax = 100;
const dayMs = 24 * 3_600_000;
const staleMs = 60_000;
/** So many apps are read at a time. More would be a burst of requests. */
const atOnceMax = 3;

/** The activity of these apps, each as soon as it is known. An app that cannot be read has an error. */
export function useActivities(apps: string[]): Map<string, { activity: AppActivity | undefined; failed: boolean }> {
  const results = useQueries({
    queries: apps.map((app) => ({
      queryKey: ['app activity', app],
      queryFn: () => inTurn(() => readActivity(app)),
      staleTime: staleMs,
    })),
  });
  return new Map(apps.map((app, at) => [app, { activity: results[at]?.data, failed: results[at]?.isError ?? false }]));
}

async function readActivity(app: string): Promise<AppActivity> {
  // Of the app's production, wherever the console is.
  const headers = { 'x-app': app, 'x-sandbox': '' };
  const since = new Date(Math.floor(Date.now() / 60_000) * 60_000 - dayMs).toISOString();
  const [uses, failed, waiting, models, usage] = await Promise.all([
    call('GET /api/v1/credential_uses', { headers, query: { page_size: 100 } }),
    call('GET /api/v1/automation_runs', { headers, query: { status: 'failed', since, limit: failedMax } }),
    call('GET /api/v1/approvals', { headers, query: { status: 'waiting', page_size: 1 } }),
    call('GET /api/v1/usage/models', { headers, query: { by: 'day', page_size: 100 } }),
    call('GET /api/v1/usage', { headers }),
  ]);
  const byDay = new Map<string, number>();
  for (const { day, requests } of uses.data) byDay.set(day, (byDay.get(day) ?? 0) + requests);
  return {
    byDay,
    requests: sum(uses.data, ({ requests }) => requests),
    refused: sum(uses.data, ({ refused }) => refused),
    failed: failed.data.length,
    waiting: waiting.total_entries,
    tokens: sum(models.data, ({ prompt_tokens, completion_tokens }) => prompt_tokens + completion_tokens),
    cost: sum(models.data, ({ cost }) => cost),
    bytes: usage.file_bytes.used,
  };
}

export function sum<T>(rows: T[], numberOf: (row: T) => number): number {
  return rows.reduce((total, row) => total + numberOf(row), 0);
}

let running = 0;
const queue: (() => void)[] = [];

/** Waits until fewer than `atOnceMax` are working. */
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= atOnceMax) await new Promise<void>((next) => queue.push(next));
  running += 1;
  try {
    return await work();
  } finally {
    running -= 1;
    queue.shift()?.();
  }
}
