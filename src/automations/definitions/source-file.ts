import type { TObject, TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { checkSchedule, ScheduleError } from '../../lib/cron.ts';
import { suggestNearest } from '../../lib/nearest.ts';
import { checkExpression, ExpressionSyntaxError } from '../engine/template.ts';
import { automationCreateSchema } from '../schema.ts';
import { checkGraph } from './graph.ts';
import { type Position, readLocatedText } from './located-text.ts';

/** An automation as people write it, in YAML or JSON: the body of `POST /automations`, or a bare graph. */
export type AutomationFile = { automation: Record<string, unknown> | undefined; graph: unknown };

/** A problem and its position in the text. */
export type FileProblem = Position & { node: string | undefined; message: string };

/** A problem of a value, at a path in it. */
export type ValueProblem = { path: (string | number)[]; node?: string | undefined; message: string };

/**
 * Parses a file and checks it as the server would. `file` is set only when there are no problems, of which the first
 * 100 are returned. A server reads files in an expression process: a text may take seconds.
 */
export function readAutomationFile(text: string): { file?: AutomationFile; problems: FileProblem[] } {
  const { text: located, problems: faults } = readLocatedText(text);
  if (!located) return { problems: faults.map((fault) => ({ ...fault, node: undefined })) };
  const { value, locate } = located;
  const bare = isObject(value) && (value.kind === 'WorkflowGraph' || value.kind === 'WorkflowProgram');
  const problems = (bare ? checkGraphOf(value, []) : checkAutomation(value)).map(({ path, node, message }) => ({
    ...locate(path),
    node,
    message,
  }));
  if (problems.length > 0) return { problems: problems.slice(0, problemsMax) };
  const graph: unknown = bare ? value : (value as { workflow?: unknown }).workflow;
  return { file: { automation: bare ? undefined : (value as Record<string, unknown>), graph }, problems };
}

const problemsMax = 100;

/** The problems of an automation: those of its members, then those of its graph. */
export function checkAutomation(value: unknown): ValueProblem[] {
  if (!isObject(value)) return [{ path: [], message: 'must be an automation (name, type, …) or a WorkflowGraph' }];
  const problems = checkMembers(automationCreateSchema, { ...value, workflow: null, input_schema: null });
  if (problems.length === 0) problems.push(...checkTexts(value));
  const { workflow } = value;
  return workflow === undefined || workflow === null
    ? problems
    : [...problems, ...checkGraphOf(workflow, ['workflow'])];
}

function checkGraphOf(graph: unknown, base: string[]): ValueProblem[] {
  return checkGraph(graph).map(({ path, node, message }) => {
    const member = path.at(-1);
    const named = typeof member === 'string' && member !== '' ? `${member} ` : '';
    return { path: [...base, ...path], node, message: `${named}${message}` };
  });
}

/** Compares a value with the schema of a body, in words for people. */
export function checkMembers(schema: TSchema, value: unknown): ValueProblem[] {
  const problems: ValueProblem[] = [];
  for (const error of Value.Errors(schema, value)) {
    const path = error.instancePath.split('/').slice(1);
    const parameters = error.params as Record<string, unknown>;
    if (error.keyword === 'required')
      for (const name of parameters.requiredProperties as string[])
        problems.push({ path: [...path, name], message: `${name} is missing` });
    else if (error.keyword === 'additionalProperties')
      for (const name of parameters.additionalProperties as string[])
        problems.push({
          path: [...path, name],
          message: `${name} is not a known member${path.length > 0 ? '' : suggestNearest(name, membersOf(schema))}`,
        });
    else if (error.keyword !== 'boolean') problems.push({ path, message: `${path.join('.')} ${error.message}` });
  }
  return problems;
}

function membersOf(schema: TSchema): string[] {
  return Object.keys((schema as Partial<TObject>).properties ?? {});
}

function checkTexts({ schedule, timezone, filter }: Record<string, unknown>): ValueProblem[] {
  const problems: ValueProblem[] = [];
  const refuse = (name: string, check: () => void) => {
    try {
      check();
    } catch (error) {
      if (!(error instanceof ScheduleError || error instanceof ExpressionSyntaxError)) throw error;
      problems.push({ path: [name], message: `${name} ${error.message}` });
    }
  };
  if (typeof schedule === 'string')
    refuse('schedule', () => checkSchedule(schedule, typeof timezone === 'string' ? timezone : 'UTC'));
  if (typeof filter === 'string') refuse('filter', () => checkExpression(filter));
  return problems;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
