import { readOptions, type ToolOptions } from './options.ts';
import type { QuarryClient } from './session.ts';
import { extractTool } from './tools/extract.ts';
import { kvDeleteTool, kvGetTool, kvListTool, kvPutTool } from './tools/kv.ts';
import { readTool } from './tools/read.ts';
import { runTool } from './tools/run.ts';
import { searchTool } from './tools/search.ts';

const makers = {
  search: searchTool,
  read: readTool,
  extract: extractTool,
  kv_get: kvGetTool,
  kv_put: kvPutTool,
  kv_list: kvListTool,
  kv_delete: kvDeleteTool,
  run: runTool,
};

export type ToolName = keyof typeof makers;
/** The definition of each tool, by name. */
export type ToolDefinitions = { [N in ToolName]: ReturnType<(typeof makers)[N]> };

export const toolNames = Object.keys(makers) as ToolName[];

/** The chosen tools, independent of any framework. `client` is the `Quarry` of `@quarry/client`. */
export function createTools<const N extends ToolName>(
  client: QuarryClient,
  options: ToolOptions<N>,
): Pick<ToolDefinitions, N> {
  const limits = readOptions(options);
  if (options.tools.some((name) => name === 'run') && limits.automations.size === 0)
    throw new TypeError('run needs automations: name those that the agent may run.');
  const tools = options.tools.map((name) => {
    if (!Object.hasOwn(makers, name)) throw new TypeError(`${name} is not one of ${toolNames.join(', ')}.`);
    return [name, makers[name](client, limits)];
  });
  return Object.fromEntries(tools) as Pick<ToolDefinitions, N>;
}

export type { ToolDefinition } from './definition.ts';
export { ToolError } from './errors.ts';
export type { Allowed, ToolOptions } from './options.ts';
export type { QuarryClient } from './session.ts';
export type { ExtractInput, ExtractResult } from './tools/extract.ts';
export type { KvGetInput, KvKey, KvList, KvListInput, KvPutInput, KvValue } from './tools/kv.ts';
export type { ReadInput, ReadResult } from './tools/read.ts';
export type { RunInput, RunResult } from './tools/run.ts';
export type { Passage, SearchInput, SearchResult } from './tools/search.ts';
