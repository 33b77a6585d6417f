import type { ApiError } from '../api/client.ts';

/** Says that the list follows changes, or that its last request failed. */
export function Live({ error }: { error?: ApiError | Error | null | undefined }) {
  return error ? (
    <span className="live stopped">Not live: the last request failed</span>
  ) : (
    <span className="live">Live</span>
  );
}
