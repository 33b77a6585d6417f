import type { z } from 'zod';
import { ToolError, translateError } from './errors.ts';
import type { Limits } from './options.ts';
import { type QuarryClient, Session } from './session.ts';
import { cutText } from './text.ts';

/** A tool, independent of any framework. */
export type ToolDefinition<Input, Output> = {
  name: string;
  /** For the model. */
  description: string;
  inputSchema: z.ZodType<Input, Input>;
  /** Throws ToolError for what the model should know, and the signal's reason when it is aborted. */
  execute(input: Input, options?: { signal?: AbortSignal | undefined }): Promise<Output>;
  /** The text of a result for the model, at most `charactersMax` long. */
  describe(output: Output): string;
};

/** What a call may take longer than its wait: requests before and after it, among them the extraction of a document. */
const requestsSeconds = 120;

/** Adds to a tool what all have: a deadline, errors that a model understands, and a bound of its text. */
export function defineTool<Input, Output>(
  client: QuarryClient,
  limits: Limits,
  tool: {
    name: string;
    description: string;
    input: z.ZodType<Input, Input>;
    run(input: Input, session: Session): Promise<Output>;
    describe(output: Output): string;
  },
): ToolDefinition<Input, Output> {
  const seconds = limits.waitSeconds + requestsSeconds;
  return {
    name: tool.name,
    description: tool.description,
    inputSchema: tool.input,
    describe: (output) => cutText(tool.describe(output), limits.charactersMax),
    async execute(input, { signal: given } = {}) {
      given?.throwIfAborted();
      const deadline = AbortSignal.timeout(seconds * 1_000);
      const signal = given === undefined ? deadline : AbortSignal.any([given, deadline]);
      try {
        return await tool.run(input, new Session(client, limits, signal));
      } catch (error) {
        given?.throwIfAborted();
        if (deadline.aborted) throw new ToolError('timeout', `The server did not respond within ${seconds} seconds.`);
        throw translateError(error);
      }
    },
  };
}
