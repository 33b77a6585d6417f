import { useCallback, useRef, useState } from 'react';
import { Link } from 'wouter';
import type { ApiError } from '../../api/client.ts';
import type { File as StoredFile } from '../../api/generated.ts';
import { uploadFile } from '../../api/upload.ts';
import { Button, bytes, ErrorNotice, Progress } from '../../ui/basics.tsx';
import { asApiError } from '../../ui/use-load.ts';

type Upload = {
  id: number;
  file: File;
  /** From 0 to 1; at 1 the server is still storing the file. */
  part: number;
  stop: () => void;
  done?: StoredFile;
  error?: ApiError;
};

/** Runs uploads, a few at a time. `onDone` is called for each finished upload. */
export function useUploads(query: { org?: string | undefined }, onDone: (file: StoredFile) => void) {
  const [list, setList] = useState<Upload[]>([]);
  const waiting = useRef<(() => void)[]>([]);
  const running = useRef(0);
  const numbers = useRef(0);
  const latest = useRef({ query, onDone });
  latest.current = { query, onDone };

  const add = useCallback((files: File[]) => {
    const change = (id: number, news: Partial<Upload>) =>
      setList((now) => now.map((upload) => (upload.id === id ? { ...upload, ...news } : upload)));
    const next = () => {
      while (running.current < atOnce && waiting.current.length > 0) waiting.current.shift()?.();
    };
    for (const file of files) {
      const id = ++numbers.current;
      const stopped = new AbortController();
      const begin = async () => {
        running.current += 1;
        try {
          const done = await uploadFile(file, latest.current.query, (part) => change(id, { part }), stopped.signal);
          change(id, { done, part: 1 });
          latest.current.onDone(done);
        } catch (error) {
          if (stopped.signal.aborted) setList((now) => now.filter((upload) => upload.id !== id));
          else change(id, { error: asApiError(error) });
        }
        running.current -= 1;
        next();
      };
      setList((now) => [{ id, file, part: 0, stop: () => stopped.abort() }, ...now]);
      waiting.current.push(begin);
    }
    next();
  }, []);

  const remove = useCallback((id: number) => setList((now) => now.filter((upload) => upload.id !== id)), []);
  return { list, add, remove };
}

const atOnce = 3;

/** The state of each upload. */
export function Uploads({ uploads: { list, add, remove } }: { uploads: ReturnType<typeof useUploads> }) {
  if (list.length === 0) return null;
  return (
    <ul className="uploads" aria-label="Uploads">
      {list.map(({ id, file, part, stop, done, error }) => (
        <li key={id}>
          <span className="cut">{done ? <Link href={`/files/${done.id}`}>{file.name}</Link> : file.name}</span>
          <span className="faint">{bytes(file.size)}</span>
          {done ? (
            <Button kind="quiet" aria-label={`Dismiss ${file.name}`} onClick={() => remove(id)}>
              Uploaded ✓
            </Button>
          ) : null}
          {done || error ? null : (
            <>
              <Progress part={part} label={`Upload of ${file.name}`} />
              <Button kind="quiet" onClick={stop}>
                Stop
              </Button>
            </>
          )}
          {error ? (
            <ErrorNotice
              error={error}
              onRetry={() => {
                remove(id);
                add([file]);
              }}
            />
          ) : null}
        </li>
      ))}
    </ul>
  );
}
