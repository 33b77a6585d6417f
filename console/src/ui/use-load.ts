import { useCallback, useEffect, useRef, useState } from 'react';
import { ApiError } from '../api/client.ts';

export type Loaded<T> = {
  data: T | undefined;
  error: ApiError | undefined;
  loading: boolean;
  /** Loads again, and keeps the current data until the response arrives. */
  reload: () => void;
  /** Replaces the loaded data. */
  replace: (data: T) => void;
};

/**
 * Loads when the component mounts and whenever `key` changes. Outdated responses are dropped.
 * @param again milliseconds after which to load again; undefined when the data will not change
 */
export function useLoad<T>(key: string, load: () => Promise<T>, again?: (data: T) => number | undefined): Loaded<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: ApiError }>({ key });
  const [turn, setTurn] = useState(0);
  const latest = useRef({ load, again });
  latest.current = { load, again };

  // biome-ignore lint/correctness/useExhaustiveDependencies: turn triggers a reload
  useEffect(() => {
    let current = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let round = 0;
    const run = () => {
      latest.current.load().then(
        (data) => {
          if (!current) return;
          setState({ key, data });
          const ms = latest.current.again?.(data);
          // Poll long-running work less and less often.
          if (ms !== undefined) timer = setTimeout(run, Math.min(ms * 1.2 ** round++, slowestMs));
        },
        (error: unknown) => {
          if (current) setState((now) => ({ ...(now.key === key ? now : { key }), error: asApiError(error) }));
        },
      );
    };
    run();
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [key, turn]);

  const reload = useCallback(() => setTurn((count) => count + 1), []);
  const replace = useCallback((data: T) => setState({ key, data }), [key]);
  const fresh = state.key === key ? state : { key };
  return {
    data: fresh.data,
    error: fresh.error,
    loading: fresh.data === undefined && fresh.error === undefined,
    reload,
    replace,
  };
}

const slowestMs = 5_000;

type Action<A extends unknown[]> = {
  run: (...given: A) => Promise<boolean>;
  busy: boolean;
  error: ApiError | undefined;
  clear: () => void;
};

/** An action of the user, with its busy state and error. `run` returns whether it succeeded. */
export function useAction<A extends unknown[]>(perform: (...given: A) => Promise<unknown>): Action<A> {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError>();
  const latest = useRef(perform);
  latest.current = perform;
  const run = useCallback(async (...given: A) => {
    setBusy(true);
    setError(undefined);
    try {
      await latest.current(...given);
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

export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new ApiError(0, { code: 'console', message });
}
