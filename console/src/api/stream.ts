import { sessionHeaders } from './client.ts';

/**
 * Reads Server-Sent Events with fetch, which unlike EventSource sends headers. Reconnects until `signal` aborts or
 * `onData` returns true.
 * @param onData receives the JSON of each event; returns true after the last one
 */
export async function readEvents<T>(url: string, onData: (data: T) => boolean, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted && failures < attemptsMax; ) {
    try {
      const response = await fetch(url, { headers: { ...sessionHeaders(url), accept: 'text/event-stream' }, signal });
      if (!response.ok || !response.body) return;
      failures = 0;
      if (await readBody(response.body, onData)) return;
    } catch {
      failures += 1;
    }
    if (!signal.aborted) await pause(retryMs * 2 ** failures);
  }
}

const attemptsMax = 6;
const retryMs = 500;

async function readBody<T>(body: ReadableStream<Uint8Array>, onData: (data: T) => boolean): Promise<boolean> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return false;
    text += decoder.decode(value, { stream: true });
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const data = event
        .split('\n')
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trim())
        .join('\n');
      if (data !== '' && onData(JSON.parse(data) as T)) {
        await reader.cancel();
        return true;
      }
    }
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
