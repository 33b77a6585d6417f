import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import type { ChatMessage } from './messages.ts';
import type { ToolCall } from './tools.ts';

type SdkMessage = LanguageModelV4Prompt[number];
type AssistantContent = Extract<SdkMessage, { role: 'assistant' }>['content'];
type ToolContent = Extract<SdkMessage, { role: 'tool' }>['content'];
type UserContent = Extract<SdkMessage, { role: 'user' }>['content'];
type ToolCallPart = Extract<AssistantContent[number], { type: 'tool-call' }>;

/** The messages as the model objects take them. The results of one response's calls are one message. */
export function promptMessages(messages: readonly ChatMessage[]): LanguageModelV4Prompt {
  const prompt: LanguageModelV4Prompt = [];
  for (const message of messages) {
    const last = prompt.at(-1);
    if (message.role === 'tool' && last?.role === 'tool') last.content.push(...resultOf(message));
    else prompt.push(promptMessage(message));
  }
  return prompt;
}

function promptMessage(message: ChatMessage): SdkMessage {
  const { role, content, toolCalls = [], attachments = [] } = message;
  const text = content === '' && toolCalls.length > 0 ? [] : [{ type: 'text' as const, text: content }];
  switch (role) {
    case 'system':
      return { role, content };
    case 'tool':
      return { role, content: resultOf(message) };
    case 'assistant':
      return { role, content: [...text, ...toolCalls.map(callPart)] };
    case 'user': {
      const files = attachments.map(({ mediaType, filename, base64 }): UserContent[number] => {
        return { type: 'file', mediaType, filename, data: { type: 'data', data: base64 } };
      });
      return { role, content: [...text, ...files] };
    }
  }
}

function callPart({ id, name, arguments: given, providerData }: ToolCall): ToolCallPart {
  const options = providerData === undefined ? {} : { providerOptions: providerData as never };
  return { type: 'tool-call', toolCallId: id, toolName: name, input: readObject(given), ...options };
}

/** Providers take arguments only as an object. Of a call that was refused as invalid, they need not be the same. */
function readObject(text: string): unknown {
  try {
    const value = JSON.parse(text === '' ? '{}' : text) as unknown;
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {}
  return { invalid: text };
}

function resultOf({ content, resultOf: call }: ChatMessage): ToolContent {
  const of = { toolCallId: call?.id ?? '', toolName: call?.name ?? '' };
  return [{ type: 'tool-result', ...of, output: { type: 'text', value: content } }];
}
