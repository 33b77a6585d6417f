import { keepPreviousData, QueryClient, useQuery } from '@tanstack/react-query';
import { useCallback, useRef, useState } from 'react';
import { ApiError, type Arguments, call, connection, type OperationName, type Result } from '../api/client.ts';
import { toast } from './toast.tsx';

/** Loads, caches and refetches data for the whole console. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1_000,
      retry: (failures, error) => failures < 1 && error instanceof ApiError && error.status >= 500,
    },
  },
});

export type Loaded<T> = {
  data: T | undefined;
  error: ApiError | undefined;
  loading: boolean;
  /** Loads again, and keeps the current data until the response arrives. */
  reload: () => void;
  /** Replaces the loaded data. */
  replace: (data: T) => void;
};

type Options<T> = {
  /** Returns the milliseconds until the next load, or undefined if the data will not change. The waits grow. */
  poll?: (data: T) => number | undefined;
  enabled?: boolean;
  /** Shows the last data while other input loads, for lists whose page or filter changes. */
  keep?: boolean;
};

/** Loads data with one operation of the API, and again after `refresh` of that operation. */
export function useApi<K extends OperationName>(
  operation: K,
  ...[input, options = {}]: [...Arguments<K>, Options<Result<K>>?]
): Loaded<Result<K>> {
  const given = input as Parameters<typeof call<K>>[1];
  return useLoad(
    [operation, given],
    () => call(operation, ...([given] as Arguments<K>)),
    options as Options<Result<K>>,
  );
}

/** Loads data with any function. The key identifies the data. */
export function useLoad<T>(key: unknown[], load: () => Promise<T>, options: Options<T> = {}): Loaded<T> {
  const { poll, enabled = true, keep = false } = options;
  const whole = [key[0], connection.app, connection.sandbox, ...key.slice(1)];
  const query = useQuery({
    queryKey: whole,
    queryFn: load,
    enabled,
    ...(keep ? { placeholderData: keepPreviousData } : {}),
    refetchInterval: ({ state }) => {
      const ms = state.data === undefined ? undefined : poll?.(state.data as T);
      return ms === undefined ? false : Math.min(ms * 1.2 ** Math.min(state.dataUpdateCount, 40), slowestPollMs);
    },
  });
  const { refetch } = query;
  const name = JSON.stringify(whole);
  const reload = useCallback(() => void refetch(), [refetch]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the name is the key's text
  const replace = useCallback((data: T) => queries.setQueryData(whole, data), [name]);
  return {
    data: query.data as T | undefined,
    error: query.error ? asApiError(query.error) : undefined,
    loading: enabled && query.isPending,
    reload,
    replace,
  };
}

const slowestPollMs = 5_000;

/** Reloads everything that was loaded with these operations. */
export function refresh(...operations: OperationName[]): void {
  for (const operation of operations) void queries.invalidateQueries({ queryKey: [operation] });
}

type Action<A extends unknown[]> = {
  run: (...given: A) => Promise<boolean>;
  busy: boolean;
  error: ApiError | undefined;
  clear: () => void;
};

/**
 * An action of the user, with its busy state and error. `run` returns whether it succeeded.
 * @param after.say the confirmation; after.refresh what the action has changed
 */
export function useAction<A extends unknown[]>(
  perform: (...given: A) => Promise<unknown>,
  after: { say?: string; refresh?: OperationName[] } = {},
): Action<A> {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const latest = useRef({ perform, after });
  latest.current = { perform, after };
  const run = useCallback(async (...given: A) => {
    setBusy(true);
    setError(undefined);
    try {
      // What an optimistic action says must not depend on what it already shows.
      const { say, refresh: changed = [] } = latest.current.after;
      await latest.current.perform(...given);
      if (say !== undefined) toast(say);
      refresh(...changed);
      return true;
    } catch (failure) {
      setError(asApiError(failure));
      return false;
    } finally {
      setBusy(false);
    }
  }, []);
  const clear = useCallback(() => setError(undefined), []);
  return { run, busy, error, clear };
}

/**
 * Shows what an action will change before the server confirms it, and what was there before if it refuses. For names
 * and switches; never for approvals and deletions.
 */
export async function optimistically<T>(before: T, guess: T, show: (data: T) => void, perform: () => Promise<T>) {
  show(guess);
  try {
    show(await perform());
  } catch (error) {
    show(before);
    throw error;
  }
}

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new ApiError(0, { code: 'console', message });
}
