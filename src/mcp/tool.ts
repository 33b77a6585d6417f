import type { Static, TObject } from 'typebox';
import { checkBody } from '../http/route/validation.ts';
import { AppError } from '../lib/errors.ts';
import { Type } from '../lib/type.ts';
import type { ApiClient } from './api-client.ts';

/** Limits of tool arguments and results. A model pays for every character that it receives. */
export const toolLimits = {
  /** Text of one document or page in one result. */
  textBytesDefault: 16_384,
  textBytesMax: 65_536,
  linesDefault: 200,
  linesMax: 2_000,
  resultsDefault: 8,
  resultsMax: 25,
  passageCharactersMax: 2_000,
  /** Free JSON inside a result: metadata, payloads, schemas. */
  jsonCharactersMax: 2_000,
  resultCharactersMax: 20_000,
  valueCharactersInListsMax: 200,
  listedMax: 100,
  /** Clients time out after 60 seconds by default. */
  waitSecondsDefault: 45,
  /** What takes longer becomes a task for clients that take tasks. */
  waitSecondsBeforeTask: 5,
  waitSecondsMax: 300,
} as const;

export type ToolContext = {
  api: ApiClient;
  /** The address of this server, for links that people open. */
  baseUrl: string;
  /** Bytes of a file visible to the caller; `end` is exclusive. */
  readFile(file: string, start: number, end: number): Promise<Buffer>;
  /** Reports progress, if the client requested it. */
  report(progress: number, total: number | undefined, message: string): Promise<void>;
  /** Aborted when the client disconnects or the server stops. A tool then returns what it has so far. */
  signal: AbortSignal;
  /** Whether the client can look at work later by itself. */
  takesTasks: boolean;
};

export type ToolResult<O> = {
  data: O;
  /** Text for the model. Default: the data as JSON. */
  text?: string;
  /** Set if the work was not finished when the call stopped waiting. */
  work?: Work;
};

/** What a call started and others can look at: a run, an extraction or an ingestion. */
export type Work = {
  id: string;
  status: 'working' | 'completed' | 'cancelled';
  /** What it does now, for people. */
  message: string;
  createdAt: string;
  updatedAt: string;
  /** The approval that it waits for, and the page to answer it. */
  approval?: { id: string; url: string };
};

export type WorkKind = {
  idPrefix: string;
  /** Looks at it as the caller; `show` returns its result as the call that started it would. Throws ApiError. */
  find(context: ToolContext, id: string): Promise<{ work: Work; show(): Promise<ToolResult<Record<string, unknown>>> }>;
  /** Missing if it cannot be cancelled. Throws ApiError. */
  cancel?(context: ToolContext, id: string): Promise<unknown>;
};

type Hints = { reads: boolean; destroys?: boolean; repeatable?: boolean; reachesOut?: boolean };

export type Tool = {
  definition: {
    name: string;
    title: string;
    description: string;
    inputSchema: { type: 'object'; [member: string]: unknown };
    outputSchema: { type: 'object'; [member: string]: unknown };
    annotations: Record<string, boolean>;
  };
  /** The operation of the API that every call needs. A caller who may not use it does not see the tool. */
  operation: string;
  /** Whether a call with these arguments waits for work that is not done. */
  mayWait(given: unknown): boolean;
  /** Validates the arguments and runs the tool. Throws AppError or ApiError. */
  call(given: unknown, context: ToolContext): Promise<ToolResult<Record<string, unknown>>>;
};

/** A tool from its schemas and its code. The hints become annotations of the protocol. */
export function defineTool<I extends TObject, O extends TObject>(tool: {
  name: string;
  title: string;
  description: string;
  operation: string;
  hints: Hints;
  input: I;
  output: O;
  run(input: Static<I>, context: ToolContext): Promise<ToolResult<Static<O>>>;
}): Tool {
  const { name, title, description, operation, hints } = tool;
  return {
    operation,
    definition: {
      name,
      title,
      description,
      inputSchema: { ...(tool.input as Record<string, unknown>), type: 'object' },
      outputSchema: { ...(tool.output as Record<string, unknown>), type: 'object' },
      annotations: {
        readOnlyHint: hints.reads,
        destructiveHint: hints.destroys ?? false,
        idempotentHint: hints.repeatable ?? hints.reads,
        openWorldHint: hints.reachesOut ?? false,
      },
    },
    mayWait(given) {
      const byDefault = tool.input.properties.wait_seconds === waitInput ? toolLimits.waitSecondsDefault : 0;
      return ((given as { wait_seconds?: unknown } | undefined)?.wait_seconds ?? byDefault) !== 0;
    },
    call: async (given, context) => {
      const result = await tool.run(checkBody(tool.input, given), context);
      return result as ToolResult<Record<string, unknown>>;
    },
  };
}

export const optionalText = Type.Optional(Type.String());
export const pageInput = Type.Optional(Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'From 1.' }));
export const pageOutput = {
  page: Type.Integer(),
  total_pages: Type.Integer(),
  total_entries: Type.Integer(),
};

/** A page of a list, as the API returns it. */
export type Page<T> = { data: T[]; page: number; total_pages: number; total_entries: number };

/** The members of `pageOutput`. */
export function pageOf({ page, total_pages, total_entries }: Page<unknown>) {
  return { page, total_pages, total_entries };
}

export const waitInput = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: toolLimits.waitSecondsMax,
    description: `Maximum seconds to wait for the end; after that, the result reports the progress. Default ${toolLimits.waitSecondsDefault}.`,
  }),
);

/** Truncates the text, never between surrogates. */
export function truncateText(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text;
  const last = text.charCodeAt(charactersMax - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? charactersMax - 1 : charactersMax);
}

/** Free JSON unchanged or, if long, the beginning of its text under `<name>_cut`. */
export function truncateJson<N extends string>(
  name: N,
  value: unknown,
  charactersMax: number,
): Record<string, unknown> {
  if (value === undefined || value === null) return {};
  const text = JSON.stringify(value);
  return text.length <= charactersMax
    ? { [name]: value }
    : { [`${name}_cut`]: `${truncateText(text, charactersMax)}…` };
}

/** The complete characters in a range of UTF-8, with their start and end. */
export function readUtf8(bytes: Buffer, start: number): { content: string; start: number; end: number } {
  const charactersBytesMax = 4;
  let first = 0;
  if (start > 0) while (first < charactersBytesMax && isContinuation(bytes[first])) first += 1;
  let last = bytes.length;
  // The first byte of a character states how many bytes follow. Without all of them, the last character is incomplete.
  for (let at = last - 1; at >= Math.max(first, last - charactersBytesMax); at--) {
    const byte = bytes[at] ?? 0;
    if (isContinuation(byte)) continue;
    const length = byte < 0x80 ? 1 : byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    if (at + length > last) last = at;
    break;
  }
  return { content: bytes.subarray(first, last).toString('utf8'), start: start + first, end: start + last };
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** 422 that names both members, unless exactly one is present. */
export function requireOneOf(names: [string, string], first: unknown, second: unknown): void {
  if ((first === undefined) !== (second === undefined)) return;
  const fields = names.map((field) => ({ field, message: `give exactly one of ${names.join(' and ')}` }));
  throw new AppError('invalid_parameters', `${names.join(', ')}: give exactly one of them`, { fields });
}

const firstPauseMs = 150;
const lastPauseMs = 2_000;

/** The seconds that a call waits for work. */
export function secondsToWait({ takesTasks }: ToolContext, given: number | undefined): number {
  return given ?? (takesTasks ? toolLimits.waitSecondsBeforeTask : toolLimits.waitSecondsDefault);
}

/** The member `work` of a result. Without `wait_seconds`, the caller asked for nothing but the id. */
export function workLeft(work: Work, seconds: number): { work?: Work } {
  return work.status === 'working' && seconds > 0 ? { work } : {};
}

/** Polls with growing pauses until the end, the timeout or the disconnection of the client. */
export async function waitFor<T>(
  { signal }: ToolContext,
  first: T,
  seconds: number,
  watch: { look(): Promise<T>; ended(state: T): boolean; tell(state: T): Promise<void> },
): Promise<T> {
  const until = performance.now() + seconds * 1_000;
  let state = first;
  let pauseMs = firstPauseMs;
  while (!watch.ended(state)) {
    await watch.tell(state);
    const leftMs = until - performance.now();
    if (leftMs <= 0 || signal.aborted) return state;
    await pause(Math.min(pauseMs, leftMs), signal);
    pauseMs = Math.min(pauseMs * 1.5, lastPauseMs);
    state = await watch.look();
  }
  return state;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    signal.addEventListener('abort', wake);
  });
}
