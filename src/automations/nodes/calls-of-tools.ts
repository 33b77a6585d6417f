import { addUsage, type ChatMessage } from '../../content/models/llm/messages.ts';
import type { ToolCall, ToolDefinition } from '../../content/models/llm/tools.ts';
import type { Generated, GenerationUsage } from '../../llm/service.ts';
import type { NodeServices } from './kind.ts';
import { type CallResult, CallsTools, type Generation, type JournalCall, type NodeError } from './tool-turns.ts';

/* What a `generate` node does with the calls of its model: it checks them, and tells the model how they ended. */

/** Calls of one response that are made. */
const callsMax = 32;
/** The same call is made this often; after that, the model has its results and asks in vain. */
const sameCallsMax = 2;
/** Of a result, the model gets this much. */
const resultCharactersMax = 65_536;
const problemsShownMax = 10;

/** The response of the model as the journal has it: with the calls that will not be made, and why. */
export async function callTools<Db>(
  services: NodeServices<Db>,
  tools: readonly ToolDefinition[],
  before: Generation | undefined,
  { text, tool_calls: calls = [], model, usage }: Generated,
): Promise<CallsTools> {
  const made = new Map<string, number>();
  const isRepeated = ({ name, arguments: given }: { name: string; arguments: string }) => {
    const call = `${name} ${canonical(given)}`;
    made.set(call, (made.get(call) ?? 0) + 1);
    return (made.get(call) ?? 0) > sameCallsMax;
  };
  for (const turn of before?.turns ?? []) turn.tool_calls.forEach(isRepeated);
  const checked: JournalCall[] = [];
  for (const [index, call] of calls.entries()) {
    const { providerData, ...rest } = call;
    const error = await findProblem(services, tools, call, isRepeated(call), index);
    const data = providerData === undefined ? {} : { provider_data: providerData };
    checked.push({ ...rest, ...data, ...(error === undefined ? {} : { error }) });
  }
  return new CallsTools({ text, tool_calls: checked, model, usage }, before?.turns.length ?? 0);
}

async function findProblem<Db>(
  services: NodeServices<Db>,
  tools: readonly ToolDefinition[],
  { name, arguments: given }: ToolCall,
  isRepeated: boolean,
  index: number,
): Promise<NodeError | undefined> {
  const tool = tools.find((each) => each.name === name);
  const names = tools.map((each) => each.name).join(', ');
  if (tool === undefined)
    return { code: 'unknown_tool', message: `There is no tool ${JSON.stringify(name)}. There are: ${names}.` };
  if (index >= callsMax) return { code: 'too_many_calls', message: `One response may call ${callsMax} tools.` };
  const value = parse(given);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { code: 'invalid_arguments', message: 'The arguments are not a JSON object.' };
  const problems = await services.checkArguments(tool.parameters, value);
  if (problems.length > 0) {
    const shown = problems.slice(0, problemsShownMax).map(({ path, message }) => `${path || '/'} ${message}`);
    return { code: 'invalid_arguments', message: `The arguments are not valid: ${shown.join('; ')}` };
  }
  if (!isRepeated) return undefined;
  return {
    code: 'repeated_call',
    message: `The same call was made ${sameCallsMax} times. Use its results, or call something else.`,
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text === '' ? '{}' : text);
  } catch {
    return undefined;
  }
}

/** The same text for arguments that differ only in their order and white space. */
function canonical(text: string): string {
  const sorted = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(sorted);
    if (typeof value !== 'object' || value === null) return value;
    return Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => [name, sorted(member)]);
  };
  return JSON.stringify(sorted(parse(text) ?? text));
}

/** The responses that called tools, each followed by the results. */
export function turnMessages(generation: Generation | undefined): ChatMessage[] {
  let index = 0;
  return (generation?.turns ?? []).flatMap(({ text, tool_calls: calls }): ChatMessage[] => {
    const toolCalls = calls.map(({ provider_data: data, error: _error, ...call }): ToolCall => {
      return data === undefined ? call : { ...call, providerData: data };
    });
    const results = toolCalls.map((call): ChatMessage => {
      const content = describe(generation?.results.get(index));
      index += 1;
      return { role: 'tool', content, resultOf: { id: call.id, name: call.name } };
    });
    return [{ role: 'assistant', content: text, toolCalls }, ...results];
  });
}

function describe(result: CallResult | undefined): string {
  if (result === undefined) throw new Error('A called tool has no result.');
  const text = 'error' in result ? JSON.stringify({ error: result.error }) : JSON.stringify(result.output ?? null);
  if (text.length <= resultCharactersMax) return text;
  return `${text.slice(0, resultCharactersMax).toWellFormed()}… (cut: ${text.length} characters)`;
}

/** What the responses so far have used. */
export function usageOf(generation: Generation | undefined): GenerationUsage | undefined {
  const [first, ...others] = (generation?.turns ?? []).map(({ usage }) => usage);
  return first && others.reduce(sumUsage, first);
}

export function sumUsage(one: GenerationUsage, other: GenerationUsage): GenerationUsage {
  return { ...addUsage(one, other), requests: one.requests + other.requests };
}
