import { ApiError, type OperationName, readError, sessionHeaders, unreachable } from './client.ts';

/**
 * Reads Server-Sent Events with fetch, which unlike EventSource sends headers. Reconnects until `signal` aborts or
 * `onData` returns true.
 * @param onData receives the JSON of each event and its name; returns true after the last one
 */
export async function readEvents<T>(url: string, onData: OnData<T>, signal: AbortSignal): Promise<void> {
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

/**
 * Sends a request whose response is a stream of events, once. Throws ApiError if the server refuses it or breaks off.
 * @param onData receives the JSON of each event and its name; returns true after the last one
 */
export async function requestEvents<T>(
  operation: OperationName,
  body: unknown,
  onData: OnData<T>,
  signal: AbortSignal,
): Promise<void> {
  const [method = 'POST', url = '/'] = operation.split(' ');
  const headers = { ...sessionHeaders(url), 'content-type': 'application/json', accept: 'text/event-stream' };
  const onBroken = (error: unknown) => {
    throw signal.aborted || error instanceof ApiError ? error : unreachable();
  };
  const response = await fetch(url, { method, headers, body: JSON.stringify(body), signal }).catch(onBroken);
  if (!response.ok || !response.body)
    throw readError(response.status, await response.text(), response.headers.get('x-request-id') ?? undefined);
  if (!(await readBody(response.body, onData).catch(onBroken))) throw unreachable();
}

type OnData<T> = (data: T, event: string) => boolean;

const attemptsMax = 6;
const retryMs = 500;

async function readBody<T>(body: ReadableStream<Uint8Array>, onData: OnData<T>): Promise<boolean> {
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
      const data = linesOf(event, 'data:').join('\n');
      if (data !== '' && onData(JSON.parse(data) as T, linesOf(event, 'event:')[0] ?? 'message')) {
        await reader.cancel();
        return true;
      }
    }
  }
}

function linesOf(event: string, name: string): string[] {
  return event
    .split('\n')
    .filter((line) => line.startsWith(name))
    .map((line) => line.slice(name.length).trim());
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
