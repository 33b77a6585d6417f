import type { ChatMessage } from '../../content/models/llm/messages.ts';
import { mapOf } from '../../lib/map-schema.ts';
import { Type } from '../../lib/type.ts';
import { modelName } from '../../llm/operator-models.ts';
import { GenerationError } from '../../llm/service.ts';
import { callTools, sumUsage, turnMessages, usageOf } from './calls-of-tools.ts';
import { defineNode, NodeFailure, type NodeServices } from './kind.ts';
import { type NodeTool, toolsMember, toolTurnsDefault, toolTurnsMax } from './tools.ts';

const messagesMax = 1_000;
const contentCharactersMax = 1_000_000;
const tokensMax = 65_536;
const tokensDefault = 2_048;
/** Pictures and documents of one message. */
const filesMax = 20;

const message = Type.Object(
  {
    role: Type.Enum(['system', 'user', 'assistant']),
    content: Type.String({ maxLength: contentCharactersMax }),
    files: Type.Optional(Type.Array(Type.String(), { maxItems: filesMax })),
  },
  { additionalProperties: false },
);

/**
 * Calls the language model. Its output is only data, and it has no rights: what it may call is listed in `tools`, and
 * each call is a node of its own, with the rights of the run.
 */
export const generate = defineNode({
  kind: 'generate',
  needs: undefined,
  needsOf: ({ messages }) => (namesFiles(messages) ? [{ area: 'files', reads: true }] : []),
  members: Type.Object(
    {
      model: Type.Optional(modelName),
      messages: Type.Array(message, { minItems: 1, maxItems: messagesMax }),
      tools: Type.Optional(toolsMember),
      max_turns: Type.Optional(Type.Integer({ minimum: 1, maximum: toolTurnsMax })),
      schema: Type.Optional(mapOf(Type.Unknown())),
      temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2 })),
      tokens: Type.Optional(Type.Integer({ minimum: 1, maximum: tokensMax })),
    },
    { additionalProperties: false },
  ),
  nests: true,
  work: {
    style: 'external',
    timeoutSeconds: 300,
    async run(members, { services, generation }) {
      const { model, schema, temperature, tokens = tokensDefault, max_turns = toolTurnsDefault } = members;
      const { calls } = generation;
      const before = usageOf(calls);
      const asked = members.tools as NodeTool[] | undefined;
      const tools = asked && (await services.describeTools(asked));
      const messages = [...(await readMessages(services, members.messages as NodeMessage[])), ...turnMessages(calls)];
      try {
        const input = { model, messages, schema, temperature, tokens, tools };
        const generated = await services.generate(generation, input as never);
        const usage = before === undefined ? generated.usage : sumUsage(before, generated.usage);
        if (generated.tool_calls === undefined)
          return { ...generated, usage, ...(tools === undefined ? {} : { turns: calls?.turns.length ?? 0 }) };
        if ((calls?.turns.length ?? 0) >= max_turns)
          throw new NodeFailure('tool_turns_exceeded', `The model called tools more than ${max_turns} times.`, usage);
        return await callTools(services, tools ?? [], calls, generated);
      } catch (error) {
        if (!(error instanceof GenerationError)) throw error;
        const usage = before === undefined ? error.usage : sumUsage(before, error.usage);
        throw new NodeFailure(error.code, error.message, usage);
      }
    },
  },
});

type NodeMessage = { role: 'system' | 'user' | 'assistant'; content: string; files?: string[] };

/** The messages with the bytes of their files. */
async function readMessages<Db>(services: NodeServices<Db>, messages: NodeMessage[]): Promise<ChatMessage[]> {
  const all: ChatMessage[] = [];
  for (const { files, ...message } of messages) {
    if (files !== undefined && files.length > 0 && message.role !== 'user')
      throw new NodeFailure('invalid_members', 'The node has files in a message that is not of the role user.');
    all.push(files === undefined ? message : { ...message, attachments: await services.readAttachments(files) });
  }
  return all;
}

function namesFiles(messages: unknown): boolean {
  return Array.isArray(messages) && messages.some((each: { files?: unknown } | null) => each?.files !== undefined);
}
