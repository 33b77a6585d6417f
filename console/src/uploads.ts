import { useSyncExternalStore } from 'react';
import type { ApiError } from './api/client.ts';
import type { StoredFile } from './api/generated.ts';
import { uploadFile } from './api/upload.ts';
import { asApiError } from './ui/query.ts';

/** A file that is being uploaded. */
export type Upload = {
  id: number;
  file: File;
  /** The number of bytes sent. All bytes are sent while the server still stores the file. */
  sent: number;
  bytesPerSecond: number;
  stop: () => void;
  retry: () => void;
  done?: StoredFile;
  error?: ApiError;
};

const concurrentMax = 3;

let list: Upload[] = [];
let numbers = 0;
let running = 0;
const waiting: (() => Promise<void>)[] = [];
const listeners = new Set<() => void>();

/** The uploads of this browser tab. They are kept outside of the pages, so that leaving a page does not stop them. */
export function useUploads(): Upload[] {
  return useSyncExternalStore(subscribe, () => list);
}

/**
 * Uploads files, a few at a time.
 * @param onDone called for each stored file, even if another page is open by then
 */
export function startUploads(
  files: File[],
  query: { org?: string | undefined },
  onDone: (file: StoredFile) => unknown,
): void {
  for (const file of files) {
    numbers += 1;
    const id = numbers;
    const stopped = new AbortController();
    const startedAt = { ms: 0 };
    const begin = async () => {
      running += 1;
      startedAt.ms = performance.now();
      try {
        const onProgress = (part: number) => {
          const seconds = (performance.now() - startedAt.ms) / 1_000;
          change(id, { sent: part * file.size, bytesPerSecond: seconds > 0 ? (part * file.size) / seconds : 0 });
        };
        const done = await uploadFile(file, query, onProgress, stopped.signal);
        await onDone(done);
        change(id, { done, sent: file.size });
      } catch (error) {
        if (stopped.signal.aborted) dismissUpload(id);
        else change(id, { error: asApiError(error) });
      }
      running -= 1;
      next();
    };
    const retry = () => {
      dismissUpload(id);
      startUploads([file], query, onDone);
    };
    set([{ id, file, sent: 0, bytesPerSecond: 0, stop: () => stopped.abort(), retry }, ...list]);
    waiting.push(begin);
  }
  next();
}

export function dismissUpload(id: number): void {
  set(list.filter((upload) => upload.id !== id));
}

export const isActive = ({ done, error }: Upload) => done === undefined && error === undefined;

function next(): void {
  while (running < concurrentMax && waiting.length > 0) void waiting.shift()?.();
}

function change(id: number, changes: Partial<Upload>): void {
  set(list.map((upload) => (upload.id === id ? { ...upload, ...changes } : upload)));
}

function set(uploads: Upload[]): void {
  list = uploads;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

// Leaving the console ends the uploads, so the browser asks first.
window.addEventListener('beforeunload', (event) => {
  if (list.some(isActive)) event.preventDefault();
});
