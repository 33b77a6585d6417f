import { useEffect, useState } from 'react';
import { urlOf } from '../../api/client.ts';
import { readEvents } from '../../api/stream.ts';
import { refresh } from '../../ui/query.ts';

const togetherMs = 150;

/**
 * Watches one user's entries and reloads the list at each change. Returns true while the stream is open.
 * @param user undefined: the caller's entries; null: nothing is watched
 */
export function useWatch(user: string | undefined | null, prefix: string): boolean {
  const [isLive, setLive] = useState(false);
  useEffect(() => {
    if (user === null) return;
    const ended = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const url = urlOf('/api/v1/kv_watch', {}, { prefix, user });
    const onChange = () => {
      setLive(true);
      // Many simultaneous changes cause one reload.
      timer ??= setTimeout(() => {
        timer = undefined;
        refresh('GET /api/v1/kv');
      }, togetherMs);
      return false;
    };
    void readEvents(url, onChange, ended.signal).finally(() => setLive(false));
    return () => {
      ended.abort();
      clearTimeout(timer);
    };
  }, [user, prefix]);
  return isLive;
}
