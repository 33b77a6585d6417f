import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { asCaller } from '../http/route/inner-caller.ts';
import type { Caller } from '../tenancy/caller.ts';
import { trace } from '../tracing/trace.ts';
import { ApiError, injectInto } from './api-client.ts';
import type { Tool } from './tool.ts';

/** A tool as a language model sees it. */
type Described = { name: string; description: string; parameters: unknown };

type RunToolsDeps = {
  /** The API of this process, which a worker opens only for this. */
  openApi(): Promise<FastifyInstance>;
  baseUrl: () => string;
  readFile(caller: Caller, file: string, start: number, end: number): Promise<Buffer>;
};

/** As OpenTelemetry's conventions for generative AI name the call of a tool. */
function attributesOf(tool: string) {
  return { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': tool, 'gen_ai.tool.type': 'function' };
}

/** Refusals that pass: of a request in progress, and of the rate limit. */
const passing = new Set(['request_in_progress', 'rate_limited']);
const pauseMs = 1_000;

/** Calls tools for automation runs, which have an identity and no credential. Each call is a request to the public API. */
export function createRunTools({ openApi, baseUrl, readFile }: RunToolsDeps) {
  // The tools are loaded when a run first needs them.
  async function find(name: string): Promise<Tool> {
    const { tools } = await import('./tools/index.ts');
    const tool = tools.find(({ definition }) => definition.name === name);
    if (tool === undefined) throw new Error(`There is no tool ${name}.`);
    return tool;
  }

  return {
    async describe(name: string): Promise<Described> {
      const { definition } = await find(name);
      return { name, description: definition.description, parameters: definition.inputSchema };
    },

    /**
     * Throws AppError or ApiError. The same key makes a repeated call change nothing twice: while the request of a killed
     * process counts as in progress, it waits. It also waits for the rate limit.
     */
    async call(caller: Caller, name: string, given: unknown, { key, signal }: { key: string; signal: AbortSignal }) {
      const tool = await find(name);
      const send = injectInto(await openApi(), { idempotencyKey: key, around: (request) => asCaller(caller, request) });
      for (;;) {
        try {
          const { data } = await trace(`execute_tool ${name}`, { attributes: attributesOf(name) }, () =>
            tool.call(given, {
              api: send,
              baseUrl: baseUrl(),
              readFile: (file, start, end) => readFile(caller, file, start, end),
              report: async () => {},
              signal,
              takesTasks: false,
            }),
          );
          return data;
        } catch (error) {
          if (!(error instanceof ApiError) || !passing.has(error.error.code)) throw error;
          await pause(pauseMs, undefined, { signal });
        }
      }
    },
  };
}
