import type { Static, TSchema } from 'typebox';
import { lazyPackage } from '../../lib/lazy-package.ts';
import { limits } from '../../lib/limits.ts';
import { mapOf } from '../../lib/map-schema.ts';
import { pattern } from '../../lib/patterns.ts';
import { Type } from '../../lib/type.ts';
import { checkExpression, ExpressionSyntaxError, hasExpression, parseTemplate } from '../engine/template.ts';
import { findKind, nodeKinds } from '../nodes/index.ts';
import { toolNodes, toolProblems } from '../nodes/tools.ts';

const values = lazyPackage<typeof import('typebox/value')>('typebox/value');

export const graphLimits = {
  nodesMax: 500,
  graphBytesMax: 1024 * 1024,
  journalEntriesMax: 10_000,
  journalBytesMax: 32 * 1024 * 1024,
  outputBytesMax: limits.payloadBytesMax,
  /** All values that the expressions of one node select. */
  membersCharactersMax: 8 * 1024 * 1024,
  outputDepthMax: 200,
  itemsMax: 1_000,
  runDepthMax: 8,
  /** Limits of a tree: a run with every run that it leads to, as children or by events. */
  treeRunsMax: 10_000,
  treeEntriesMax: 250_000,
  nestingMax: 4,
} as const;

const nodeId = Type.String({
  ...pattern(
    '^[A-Za-z_][A-Za-z0-9_-]{0,99}$',
    'must have 1 to 100 letters, digits and _ -, and begin with a letter or _',
  ),
  description: 'The name of the node in the graph. Expressions read its output as $nodes.<id>.',
});

export const retrySchema = Type.Object(
  {
    max_attempts: Type.Integer({ minimum: 1, maximum: 100, description: 'Attempts in total, with the first one.' }),
    initial_seconds: Type.Optional(
      Type.Number({ minimum: 0, maximum: 86_400, description: 'The pause before the second attempt. Default 1.' }),
    ),
    factor: Type.Optional(
      Type.Number({ minimum: 1, maximum: 100, description: 'Multiplies each following pause. Default 2.' }),
    ),
  },
  { additionalProperties: false },
);

/** The members that any node may have. */
export const commonMembers = Type.Object({
  id: nodeId,
  kind: Type.String({ description: 'What the node does.' }),
  on_success: Type.Optional(Type.String({ description: 'The next node. Without it, the run ends with the output.' })),
  on_error: Type.Optional(Type.String({ description: 'The next node after a failure. Without it, the run fails.' })),
  retry: Type.Optional(retrySchema),
  timeout_seconds: Type.Optional(
    Type.Number({ exclusiveMinimum: 0, maximum: 366 * 24 * 3_600, description: 'The node fails after so long.' }),
  ),
});
const commonNames = new Set(Object.keys(commonMembers.properties));
/** Members whose strings are never templates: they define the graph itself. */
const structural = new Set([...commonNames, 'node', 'nodes', 'on_true', 'on_false', 'on_timeout']);

export type GraphNode = Static<typeof commonMembers> & Record<string, unknown>;

/** The shape of a graph for routes and the OpenAPI document; `checkGraph` checks the nodes. */
const graphSchema = Type.Object(
  {
    kind: Type.Literal('WorkflowGraph'),
    version: Type.Literal(1),
    name: Type.Optional(Type.String({ maxLength: 500 })),
    start_node: Type.String(),
    nodes: Type.Array(mapOf(Type.Unknown()), { minItems: 1, maxItems: graphLimits.nodesMax }),
  },
  { additionalProperties: false },
);

/** A workflow that the user's own program executes. It names what the program registers. */
const programSchema = Type.Object(
  {
    kind: Type.Literal('WorkflowProgram'),
    version: Type.Literal(1),
    name: Type.String({ minLength: 1, maxLength: 200 }),
  },
  { additionalProperties: false },
);

/** Whether a workflow is a program. */
export function isProgram(workflow: unknown): boolean {
  return isObject(workflow) && workflow.kind === 'WorkflowProgram';
}

/** A graph that has passed the check, with its nodes (nested ones too) by id. */
export type Graph = { startNode: string; nodes: ReadonlyMap<string, GraphNode> };

/** One problem in a graph: its `path` from the graph's root, the node, and a message. */
type GraphProblem = { path: (string | number)[]; node: string | undefined; message: string };

const problemsMax = 100;

/** Checks a workflow when it is saved: a graph, or a program. Returns up to 100 problems; none for a valid graph. */
export function checkGraph(value: unknown): GraphProblem[] {
  const check = checkGraphInSteps(value);
  for (;;) {
    const step = check.next();
    if (step.done) return step.value;
  }
}

/** Like `checkGraph`, in steps of a few milliseconds: a graph may have thousands of expressions to parse. */
export function* checkGraphInSteps(value: unknown): Generator<undefined, GraphProblem[]> {
  const problems: GraphProblem[] = [];
  const report = (path: (string | number)[], node: string | undefined, message: string) => {
    if (problems.length < problemsMax) problems.push({ path, node, message });
  };
  // First, because naming the members of a longer one takes long.
  if (JSON.stringify(value).length > graphLimits.graphBytesMax) {
    report([], undefined, `is longer than ${graphLimits.graphBytesMax} bytes`);
    return problems;
  }
  yield;
  const schema = isProgram(value) ? programSchema : graphSchema;
  for (const { path, message } of schemaProblems(schema, value)) report(path, undefined, message);
  yield;
  if (isProgram(value)) return problems;
  if (problems.length > 0 || !values().Check(graphSchema, value)) return problems;

  const places: Place[] = [];
  value.nodes.forEach((node, index) => {
    collectNodes(node, ['nodes', index], false, 0, places, report);
  });
  if (places.length > graphLimits.nodesMax) report(['nodes'], undefined, `has more than ${graphLimits.nodesMax} nodes`);

  const byId = new Map<string, Place>();
  for (const place of places) {
    yield* checkNode(place, report);
    if (byId.has(place.id)) report([...place.path, 'id'], place.id, 'is already used by another node');
    else byId.set(place.id, place);
  }
  checkEdges(value.start_node, byId, report);
  return problems;
}

/** The graph as the engine reads it. The value must have passed `checkGraph`. */
export function readGraph(value: unknown): Graph {
  const { start_node, nodes } = value as Static<typeof graphSchema>;
  const all = new Map<string, GraphNode>();
  const add = (node: GraphNode) => {
    all.set(node.id, node);
    for (const nested of nestedNodes(node)) add(nested);
  };
  for (const node of nodes) add(node as GraphNode);
  return { startNode: start_node, nodes: all };
}

/** The nodes inside a `for_each` (one) or a `parallel`, in order; those that the tools of a `generate` run as. */
export function nestedNodes(node: GraphNode): GraphNode[] {
  if (node.kind === 'for_each') return [node.node as GraphNode];
  if (node.kind === 'parallel') return node.nodes as GraphNode[];
  return toolNodes(node);
}

/** The members that belong to a node's kind, without the common ones and the nested nodes. */
export function ownMembers(node: GraphNode): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(node).filter(([name]) => !commonNames.has(name) && name !== 'node' && name !== 'nodes'),
  );
}

/** Checks a node's members after their templates are resolved. Returns the problem, or undefined. */
export function findMemberProblem(kindName: string, members: Record<string, unknown>): string | undefined {
  const kind = findKind(kindName);
  if (!kind) return `unknown kind "${kindName}"`;
  const checked = kindName === 'for_each' ? { ...members, node: null } : members;
  const withNested = kindName === 'parallel' ? { ...checked, nodes: null } : checked;
  const problem = schemaProblems(kind.members, withNested)[0];
  return problem && `${problem.path.join('.')} ${problem.message}`;
}

type Report = (path: (string | number)[], node: string | undefined, message: string) => void;
type Place = { id: string; node: Record<string, unknown>; path: (string | number)[]; nested: boolean };

function collectNodes(
  node: Record<string, unknown>,
  path: (string | number)[],
  nested: boolean,
  depth: number,
  places: Place[],
  report: Report,
): void {
  const id = typeof node.id === 'string' ? node.id : '';
  if (id === '') report([...path, 'id'], undefined, 'must be a string that names the node');
  places.push({ id, node, path, nested });
  if (depth > graphLimits.nestingMax) {
    report(path, id, `is nested more than ${graphLimits.nestingMax} deep`);
    return;
  }
  const descend = (value: unknown, at: (string | number)[]) => {
    if (isObject(value)) collectNodes(value, at, true, depth + 1, places, report);
    else report(at, id, 'must be a node');
  };
  if (node.kind === 'for_each') descend(node.node, [...path, 'node']);
  if (node.kind === 'parallel') {
    if (!Array.isArray(node.nodes) || node.nodes.length === 0)
      report([...path, 'nodes'], id, 'must be a list of nodes');
    else for (const [index, inner] of node.nodes.entries()) descend(inner, [...path, 'nodes', index]);
  }
}

function* checkNode(place: Place, report: Report): Generator<undefined, void> {
  const { id, node, path, nested } = place;
  const kind = typeof node.kind === 'string' ? nodeKinds.get(node.kind) : undefined;
  if (!kind) {
    const known = [...nodeKinds.keys()].join(', ');
    report([...path, 'kind'], id, `must be one of ${known}, not ${JSON.stringify(node.kind ?? null)}`);
    return;
  }
  if (nested && !kind.nests) report([...path, 'kind'], id, `${kind.kind} cannot be nested in another node`);
  const members = Object.fromEntries(Object.entries(node).filter(([name]) => !commonNames.has(name)));
  const common = Object.fromEntries(Object.entries(node).filter(([name]) => commonNames.has(name)));
  for (const problem of [...schemaProblems(commonMembers, common), ...schemaProblems(kind.members, members)]) {
    const own = !commonNames.has(String(problem.path[0]));
    if (own && hasTemplateAt(members, problem.path)) continue;
    report([...path, ...problem.path], id, problem.message);
  }
  if (kind.kind === 'wait' && (node.seconds === undefined) === (node.until === undefined))
    report([...path, 'seconds'], id, 'exactly one of seconds and until must be given');
  if (kind.kind === 'generate')
    for (const problem of toolProblems(node)) report([...path, ...problem.path], id, problem.message);
  for (const [name, value] of Object.entries(node)) {
    if (structural.has(name)) continue;
    if (kind.expressions?.includes(name)) checkBareExpression(value, [...path, name], id, report);
    else yield* checkTemplates(value, [...path, name], id, report);
    yield;
  }
}

function checkBareExpression(value: unknown, path: (string | number)[], id: string, report: Report): void {
  if (value === undefined) return;
  if (typeof value !== 'string') report(path, id, 'must be an expression');
  else attempt(() => checkExpression(unwrapExpression(value)), path, id, report);
}

/** `when` and `items` are bare expressions. If one is wrapped in `{{…}}`, only the inside counts. */
export function unwrapExpression(text: string): string {
  if (!text.trimStart().startsWith('{{')) return text;
  const template = parseTemplate(text.trim());
  const part = template.parts[0];
  return template.whole && part && 'expression' in part ? part.expression : text;
}

function* checkTemplates(
  value: unknown,
  path: (string | number)[],
  id: string,
  report: Report,
): Generator<undefined, void> {
  if (typeof value === 'string') {
    if (!hasExpression(value)) return;
    attempt(() => parseTemplate(value), path, id, report);
    yield;
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* checkTemplates(item, [...path, index], id, report);
  } else if (isObject(value)) {
    for (const [name, member] of Object.entries(value)) yield* checkTemplates(member, [...path, name], id, report);
  }
}

function attempt(check: () => unknown, path: (string | number)[], id: string, report: Report): void {
  try {
    check();
  } catch (error) {
    if (!(error instanceof ExpressionSyntaxError)) throw error;
    report(path, id, error.message);
  }
}

/** Edges lead to top-level nodes; nested nodes have none; every top-level node must be reachable. */
function checkEdges(startNode: string, byId: ReadonlyMap<string, Place>, report: Report): void {
  const start = byId.get(startNode);
  if (!start) report(['start_node'], undefined, `does not name a node: "${startNode}"`);
  else if (start.nested) report(['start_node'], undefined, `names a nested node: "${startNode}"`);
  const next = new Map<string, string[]>();
  for (const place of byId.values()) {
    const targets: string[] = [];
    for (const member of edgeMembers(place.node)) {
      const target = place.node[member];
      if (typeof target !== 'string') continue;
      const path = [...place.path, member];
      if (place.nested) report(path, place.id, 'is not allowed on a nested node');
      else if (!byId.has(target)) report(path, place.id, `does not name a node: "${target}"`);
      else if (byId.get(target)?.nested) report(path, place.id, `names a nested node: "${target}"`);
      else targets.push(target);
    }
    next.set(place.id, targets);
  }
  if (!start) return;
  const reached = new Set([startNode]);
  for (const id of reached) for (const target of next.get(id) ?? []) reached.add(target);
  for (const place of byId.values())
    if (!place.nested && !reached.has(place.id)) report(place.path, place.id, 'cannot be reached from start_node');
}

/** A conditional continues only by `on_true` and `on_false`; a node that ends the run has no next node. */
function edgeMembers(node: Record<string, unknown>): string[] {
  const own = nodeKinds.get(String(node.kind))?.edges ?? [];
  return ['on_success', 'on_error', ...own].filter((name) => node[name] !== undefined);
}

function hasTemplateAt(members: unknown, path: (string | number)[]): boolean {
  let value = members;
  for (const step of path) {
    if (typeof value === 'string') break;
    value = isObject(value) || Array.isArray(value) ? (value as Record<string | number, unknown>)[step] : undefined;
  }
  return typeof value === 'string' && hasExpression(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The schema's errors as problems, with paths from the value's root; unknown and missing members are named. */
function schemaProblems(schema: TSchema, value: unknown) {
  const problems: { path: (string | number)[]; message: string }[] = [];
  for (const error of values().Errors(schema, value)) {
    const base = error.instancePath.split('/').slice(1).map(unescapePointer);
    const parameters = error.params as Record<string, unknown>;
    if (error.keyword === 'boolean') continue;
    if (error.keyword === 'required')
      for (const name of parameters.requiredProperties as string[])
        problems.push({ path: [...base, name], message: 'is missing' });
    else if (error.keyword === 'additionalProperties')
      for (const name of parameters.additionalProperties as string[])
        problems.push({ path: [...base, name], message: 'is not a known member' });
    else if (error.keyword === 'enum')
      problems.push({ path: base, message: `must be one of ${(parameters.allowedValues as string[]).join(', ')}` });
    else if (error.keyword !== 'anyOf' || !problems.some((p) => p.path.join() === base.join()))
      problems.push({ path: base, message: error.message });
  }
  return problems;
}

function unescapePointer(step: string): string | number {
  const text = step.replaceAll('~1', '/').replaceAll('~0', '~');
  return /^\d+$/.test(text) ? Number(text) : text;
}
