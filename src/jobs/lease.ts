/** Work that no other process may do meanwhile. `signal` is aborted if it is lost, or if the job has to stop. */
type Lease = { signal: AbortSignal; isLost: () => boolean; end: () => void };

type LeaseOptions = {
  /** Extends the lease. False if this process no longer has it. */
  renew: () => Promise<boolean>;
  everyMs: number;
  /** Of the job that does the work, if a job does. */
  signal: AbortSignal | undefined;
  onError: (error: unknown) => void;
  /** Why the signal is aborted if the lease is lost. */
  reason?: Error;
};

/** Renews a lease until it is lost or ended. */
export function keepLease({ renew, everyMs, signal, onError, reason }: LeaseOptions): Lease {
  const lost = new AbortController();
  const timer = setInterval(() => {
    renew()
      .then((held) => held || lost.abort(reason))
      .catch(onError);
  }, everyMs);
  return {
    signal: signal ? AbortSignal.any([signal, lost.signal]) : lost.signal,
    isLost: () => lost.signal.aborted,
    end: () => clearInterval(timer),
  };
}
