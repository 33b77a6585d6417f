import { Value } from 'typebox/value';
import { isMap, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { checkSchedule, ScheduleError } from '../../lib/cron.ts';
import { checkExpression, ExpressionSyntaxError } from '../engine/template.ts';
import { automationCreateSchema } from '../schema.ts';
import { checkGraph } from './graph.ts';
import { findYamlExcess, readYamlValue } from './yaml-value.ts';

/** An automation as people write it, in YAML or JSON: the body of `POST /automations`, or a bare graph. */
export type AutomationFile = { automation: Record<string, unknown> | undefined; graph: unknown };

/** A problem and its position in the text. Lines and columns count from 1. */
export type FileProblem = { line: number; column: number; node: string | undefined; message: string };

/**
 * Parses a file and checks it as the server would. `file` is set only when there are no problems, of which the first
 * 100 are returned. A server reads files in an expression process: a text may take seconds.
 */
export function readAutomationFile(text: string): { file?: AutomationFile; problems: FileProblem[] } {
  const lines = new LineCounter();
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const invalid = (faults: { offset: number; message: string }[]) => ({
    problems: faults.map(({ offset, message }) => ({ ...at(offset), node: undefined, message })),
  });
  const excess = findYamlExcess(text);
  if (excess !== undefined) {
    addLines(lines, text.slice(0, excess.offset));
    return invalid([excess]);
  }
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  if (document.errors.length > 0)
    return invalid(document.errors.slice(0, problemsMax).map(({ pos, message }) => ({ offset: pos[0], message })));
  const { value, problems: faults } = readYamlValue(document);
  if (faults.length > 0) return invalid(faults);
  const contents: unknown = document.contents;
  const locate = (path: readonly (string | number)[]) => at(offsetOf(contents, path));
  const problems: FileProblem[] = [];
  const bare = isObject(value) && (value.kind === 'WorkflowGraph' || value.kind === 'WorkflowProgram');
  const graph: unknown = bare ? value : isObject(value) ? value.workflow : undefined;
  const base = bare ? [] : ['workflow'];
  if (!bare) problems.push(...checkAutomation(value).map((one) => ({ ...locate(one.path), node: undefined, ...one })));
  if (graph !== undefined && graph !== null)
    for (const { path, node, message } of checkGraph(graph)) {
      const member = path.at(-1);
      const named = typeof member === 'string' && member !== '' ? `${member} ` : '';
      problems.push({ ...locate([...base, ...path]), node, message: `${named}${message}` });
    }
  if (problems.length > 0) return { problems: problems.slice(0, problemsMax) };
  return { file: { automation: bare ? undefined : (value as Record<string, unknown>), graph }, problems };
}

function addLines(lines: LineCounter, text: string): void {
  lines.addNewLine(0);
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines.addNewLine(at + 1);
}

const problemsMax = 100;

function checkAutomation(value: unknown): { path: (string | number)[]; message: string }[] {
  if (!isObject(value)) return [{ path: [], message: 'must be an automation (name, type, …) or a WorkflowGraph' }];
  const problems: { path: (string | number)[]; message: string }[] = [];
  const loose = { ...value, workflow: null, input_schema: null };
  for (const error of Value.Errors(automationCreateSchema, loose)) {
    const path = error.instancePath.split('/').slice(1);
    const parameters = error.params as Record<string, unknown>;
    if (error.keyword === 'required')
      for (const name of parameters.requiredProperties as string[])
        problems.push({ path: [...path, name], message: `${name} is missing` });
    else if (error.keyword === 'additionalProperties')
      for (const name of parameters.additionalProperties as string[])
        problems.push({ path: [...path, name], message: `${name} is not a known member` });
    else if (error.keyword !== 'boolean') problems.push({ path, message: `${path.join('.')} ${error.message}` });
  }
  if (problems.length > 0) return problems;
  const refuse = (name: string, check: () => void) => {
    try {
      check();
    } catch (error) {
      if (!(error instanceof ScheduleError || error instanceof ExpressionSyntaxError)) throw error;
      problems.push({ path: [name], message: `${name} ${error.message}` });
    }
  };
  const { schedule, timezone, filter } = value;
  if (typeof schedule === 'string')
    refuse('schedule', () => checkSchedule(schedule, typeof timezone === 'string' ? timezone : 'UTC'));
  if (typeof filter === 'string') refuse('filter', () => checkExpression(filter));
  return problems;
}

/** The position in the text of the value at a path, or of the nearest existing value around it. */
function offsetOf(contents: unknown, path: readonly (string | number)[]): number {
  let offset = startOf(contents);
  let node = contents;
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.find((item) => String((item.key as { value?: unknown } | null)?.value) === String(step));
      if (!pair) break;
      offset = startOf(pair.key) ?? offset;
      node = pair.value;
    } else if (isSeq(node)) {
      const item: unknown = node.items[Number(step)];
      if (item === undefined) break;
      offset = startOf(item) ?? offset;
      node = item;
    } else break;
  }
  return offset ?? 0;
}

function startOf(node: unknown): number | undefined {
  return isObject(node) ? (node as Partial<Node>).range?.[0] : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
