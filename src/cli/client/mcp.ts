import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../errors.ts';
import type { Session } from './session.ts';

type Id = string | number;
type Message = {
  id?: Id | null;
  method?: string;
  params?: Record<string, unknown>;
  result?: { protocolVersion?: string };
};

/** Messages of a client that wait for the server at one time. Each costs a connection. */
const inFlightMax = 100;
/** How long the responses to the last messages are awaited after the end of the input. */
const lastResponsesMs = 5_000;
/** Pauses before a message is sent again to a server that restarts: 15 s in total. */
const pausesMs = [250, 500, 1_000, 2_000, 3_000, 4_000, 4_250];
const errorCodes = { parse: -32_700, server: -32_000 } as const;

/**
 * `quarry mcp`: passes JSON-RPC messages, one per line, between standard input and output and the server's MCP endpoint.
 * The client and the server negotiate the protocol; every message is an independent request. Returns at the end of the
 * input.
 */
export async function serve(session: Session): Promise<number> {
  const bridge = new Bridge(session);
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY }))
    if (line.trim() !== '') bridge.take(line);
  await bridge.end();
  return 0;
}

class Bridge {
  readonly #session: Session;
  readonly #inFlight = new Map<object, { ids: Id[]; stop: AbortController; ended: Promise<void> }>();
  /** The revision that `initialize` has agreed on. Later revisions name it in every message. */
  #version: string | undefined;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Sends the message of a line. Its responses are written as they arrive. */
  take(line: string): void {
    const given = parseMessage(line);
    if (given === undefined) {
      this.#fail([null], errorCodes.parse, 'A line must hold one JSON-RPC message.');
      return;
    }
    const messages = Array.isArray(given) ? given : [given];
    if (messages.length === 1 && this.#cancels(messages[0])) return;
    const ids = messages.flatMap(({ id, method }) => (method !== undefined && id != null ? [id] : []));
    if (this.#inFlight.size >= inFlightMax) {
      this.#fail(ids, errorCodes.server, `At most ${inFlightMax} messages may wait for a response.`);
      return;
    }
    const stop = new AbortController();
    const call = { ids, stop, ended: Promise.resolve() };
    call.ended = this.#exchange(line, messages, ids, stop.signal).finally(() => this.#inFlight.delete(call));
    this.#inFlight.set(call, call);
  }

  /** Waits for the last responses for a while, then cancels their requests. */
  async end(): Promise<void> {
    const calls = [...this.#inFlight.values()];
    const tooLate = setTimeout(() => {
      for (const { stop } of calls) stop.abort();
    }, lastResponsesMs);
    await Promise.all(calls.map(({ ended }) => ended));
    clearTimeout(tooLate);
  }

  /** The endpoint keeps no sessions: closing the request is what cancels a call there. */
  #cancels(message: Message | undefined): boolean {
    if (message?.method !== 'notifications/cancelled') return false;
    const named = message.params?.requestId as Id;
    for (const { ids, stop } of this.#inFlight.values()) if (ids.length === 1 && ids[0] === named) stop.abort();
    return true;
  }

  async #exchange(line: string, messages: Message[], ids: Id[], signal: AbortSignal): Promise<void> {
    const open = new Set(ids);
    try {
      const headers = headersOf(messages, this.#version);
      for (let attempt = 0; ; attempt++)
        try {
          for await (const response of this.#session.client.converse(line, headers, signal)) {
            const { id, method, result } = response as Message;
            if (method === undefined && id != null) open.delete(id);
            if (messages[0]?.method === 'initialize') this.#version = result?.protocolVersion ?? this.#version;
            this.#write(response);
          }
          break;
        } catch (error) {
          const pauseMs = pausesMs[attempt];
          if (pauseMs === undefined || !mayRepeat(error, messages)) throw error;
          await sleep(pauseMs, undefined, { signal: AbortSignal.any([signal, this.#session.signal]) });
        }
      this.#fail([...open], errorCodes.server, 'The server ended the response early. The call may have taken effect.');
    } catch (error) {
      // Nobody waits for the response to a call that the client has cancelled.
      if (signal.aborted || this.#session.signal.aborted) return;
      this.#fail([...open], errorCodes.server, error instanceof Error ? error.message : String(error));
    }
  }

  #fail(ids: (Id | null)[], code: number, message: string): void {
    for (const id of ids) this.#write({ jsonrpc: '2.0', id, error: { code, message } });
  }

  #write(message: unknown): void {
    process.stdout.write(`${JSON.stringify(message)}\n`);
  }
}

/** A message, or several as one revision of the protocol allows; undefined for anything else. */
function parseMessage(line: string): Message | Message[] | undefined {
  const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);
  try {
    const given = JSON.parse(line) as unknown;
    const isMessage = Array.isArray(given) ? given.length > 0 && given.every(isObject) : isObject(given);
    return isMessage ? (given as Message | Message[]) : undefined;
  } catch {
    return undefined;
  }
}

const readingMethod =
  /^(?:initialize|ping|server\/discover|resources\/read|prompts\/get|tasks\/get|\w+(?:\/templates)?\/list)$/;

/** A message that has not reached a working server is repeated, as is one that only reads. */
function mayRepeat(error: unknown, messages: Message[]): boolean {
  if (!(error instanceof ApiError)) return false;
  if (error.status === 503) return true;
  return error.status === 0 && (!error.isSent || messages.every(({ method }) => readingMethod.test(method ?? '')));
}

const versionMember = 'io.modelcontextprotocol/protocolVersion';
/** The member of `params` that the header `Mcp-Name` repeats. */
const nameMembers: Record<string, string> = {
  ...{ 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' },
  ...{ 'tasks/get': 'taskId', 'tasks/update': 'taskId', 'tasks/cancel': 'taskId' },
};

/** The headers that repeat members of the message, as its revision of the protocol asks for over HTTP. */
function headersOf(messages: Message[], agreed: string | undefined): Record<string, string> {
  const { method, params } = messages[0] ?? {};
  const named = (params?._meta as Record<string, unknown> | undefined)?.[versionMember];
  if (typeof named !== 'string' || method === undefined)
    return agreed === undefined || method === 'initialize' ? {} : { 'mcp-protocol-version': encodeHeader(agreed) };
  const name = params?.[nameMembers[method] ?? ''];
  return {
    'mcp-protocol-version': encodeHeader(named),
    'mcp-method': encodeHeader(method),
    ...(typeof name === 'string' ? { 'mcp-name': encodeHeader(name) } : {}),
  };
}

/** Text that a header cannot carry, in the protocol's base64 form. */
function encodeHeader(text: string): string {
  const isPlain = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !/^=\?base64\?/i.test(text);
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`;
}
