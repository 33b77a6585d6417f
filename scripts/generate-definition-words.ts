import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { commonMembers } from '../src/automations/definitions/graph.ts';
import { nodeKinds } from '../src/automations/nodes/index.ts';
import type { OpenApi } from './generate-console-types.ts';
import type { Schema } from './openapi-types.ts';

/*
 * Writes console/src/pages/automations/definition-words.ts, which the editor of automations completes and explains:
 * the members of an automation, of a graph and of each kind of node. Part of `npm run console:types`; a rule test
 * compares the file with this script's output.
 */

type Word = { about?: string; required?: true; values?: string[] };

const graph: Record<string, Word> = {
  kind: { about: 'What executes the workflow: a graph here, or your own program.', required: true },
  version: { about: 'The version of the format: 1.', required: true, values: ['1'] },
  start_node: { about: 'The id of the node that runs first.', required: true },
  nodes: { about: 'The nodes, in any order.', required: true },
  name: { about: 'A name for people.' },
};
graph.kind = { ...graph.kind, values: ['WorkflowGraph', 'WorkflowProgram'] };

/** The text of the file. */
export function definitionWords({ components }: OpenApi, guide: string): string {
  const outputs = outputsOf(guide);
  const kinds = [...nodeKinds.values()].map(({ kind, members }) => {
    const output = outputs.get(kind);
    return [kind, { ...(output === undefined ? {} : { output }), members: wordsOf(members as Schema) }];
  });
  const words = {
    automation: wordsOf(components.schemas.CreateAutomationRequest ?? {}),
    graph,
    node: wordsOf(commonMembers as Schema),
    kinds: Object.fromEntries(kinds),
  };
  return [
    '// Written by scripts/generate-definition-words.ts. Do not edit: npm run console:types',
    'type Word = { about?: string; required?: true; values?: string[] };',
    'export type Words = Record<string, Word>;',
    `const text = ${JSON.stringify(JSON.stringify(words))};`,
    '/** The members of an automation, of its graph, of any node, and of each kind of node with what it returns. */',
    'export const definitionWords = JSON.parse(text) as {',
    '  automation: Words;',
    '  graph: Words;',
    '  node: Words;',
    '  kinds: Record<string, { output?: string; members: Words }>;',
    '};',
    '',
  ].join('\n');
}

/** What each kind returns, from the table of the guide. */
function outputsOf(guide: string): Map<string, string> {
  const rows = [...guide.matchAll(/^\| (`\w+`(?:, `\w+`)*) +\|[^\n]*\| ([^|\n]+?) +\|$/gm)];
  return new Map(
    rows.flatMap(([, names = '', output = '']) =>
      [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => [name, output.replaceAll('`', '')] as const),
    ),
  );
}

function wordsOf({ properties = {}, required = [] }: Schema): Record<string, Word> {
  const entries = Object.entries(properties).map(([name, schema]) => {
    const values = valuesOf(schema);
    const word: Word = {
      ...(schema.description === undefined ? {} : { about: schema.description }),
      ...(required.includes(name) ? { required: true } : {}),
      ...(values.length === 0 ? {} : { values }),
    };
    return [name, word] as const;
  });
  return Object.fromEntries(entries);
}

function valuesOf(schema: Schema): string[] {
  if (schema.enum) return schema.enum.map(String);
  if (schema.type === 'boolean') return ['true', 'false'];
  return (schema.anyOf ?? []).flatMap(valuesOf);
}

const project = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));

if (import.meta.main) {
  const openApi = JSON.parse(readFileSync(project('openapi.json'), 'utf8')) as OpenApi;
  const guide = readFileSync(project('docs/automations.md'), 'utf8');
  writeFileSync(project('console/src/pages/automations/definition-words.ts'), definitionWords(openApi, guide));
}
