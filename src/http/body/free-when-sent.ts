import type { ServerResponse } from 'node:http';
import { freeBytes } from '../../lib/single-use-bytes.ts';

/** Frees each chunk of a response when the connection has taken its bytes. Nothing else may use the chunks. */
export function freeWhenSent(response: ServerResponse): void {
  const write = response.write.bind(response) as (chunk: Uint8Array, sent: (error?: Error | null) => void) => boolean;
  response.write = (chunk: Uint8Array) =>
    write(chunk, (error) => {
      if (error == null) freeBytes(chunk);
    });
}
