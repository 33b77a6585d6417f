import { limits } from '../../lib/limits.ts';
import { mapOf } from '../../lib/map-schema.ts';
import { pattern } from '../../lib/patterns.ts';
import { Type } from '../../lib/type.ts';
import { hasExpression } from '../engine/template.ts';
import { operations } from './operations.ts';

/* The member `tools` of a `generate` node, and the nodes that its calls run as. */

const toolsMax = 32;
export const toolTurnsMax = 50;
export const toolTurnsDefault = 10;

const people = Type.Array(Type.String(), { maxItems: limits.approvalPeopleMax });
const approve = Type.Object(
  {
    question: Type.Optional(Type.String({ minLength: 1, maxLength: 2_000 })),
    users: Type.Optional(people),
    teams: Type.Optional(people),
    roles: Type.Optional(Type.Array(Type.Enum(['admin', 'member', 'viewer']), { maxItems: 3 })),
    org: Type.Optional(Type.String()),
    exclude_invoker: Type.Optional(Type.Boolean()),
    timeout_seconds: Type.Optional(Type.Number({ exclusiveMinimum: 0, maximum: 366 * 24 * 3_600 })),
  },
  { additionalProperties: false },
);

const tool = Type.Object(
  {
    automation: Type.Optional(Type.String({ minLength: 1 })),
    operation: Type.Optional(Type.Enum(Object.keys(operations))),
    name: Type.Optional(
      Type.String({
        ...pattern(
          '^[A-Za-z_][A-Za-z0-9_-]{0,63}$',
          'must have 1 to 64 letters, digits and _ -, and begin with a letter or _',
        ),
      }),
    ),
    description: Type.Optional(Type.String({ minLength: 1, maxLength: 4_000 })),
    arguments: Type.Optional(mapOf(Type.Unknown())),
    approve: Type.Optional(approve),
  },
  { additionalProperties: false },
);
export const toolsMember = Type.Array(tool, { minItems: 1, maxItems: toolsMax });

export type NodeTool = {
  automation?: string;
  operation?: string;
  name?: string;
  description?: string;
  arguments?: Record<string, unknown>;
  approve?: Record<string, unknown> & { question?: string; timeout_seconds?: number };
};

/** The name under which the model calls a tool. */
export function nameOfTool({ name, operation, automation = '' }: NodeTool): string {
  const own = (name ?? operation ?? automation.replace(/[^A-Za-z0-9_-]/g, '_')).slice(0, 64);
  return /^[A-Za-z_]/.test(own) ? own : `_${own.slice(1)}`;
}

/** The tools of a node as its graph has them, before templates are resolved. */
function toolsOf(node: Record<string, unknown>): NodeTool[] {
  return node.kind === 'generate' && Array.isArray(node.tools) ? (node.tools as NodeTool[]) : [];
}

/** The ids of the nodes that a call of a tool runs as. No node of a graph can have such an id. */
export function toolNodeId(nodeId: string, tool: string): string {
  return `${nodeId}/${tool}`;
}

export function approvalNodeId(nodeId: string, tool: string): string {
  return `${nodeId}/${tool}/approval`;
}

type ToolNode = { id: string; kind: string; timeout_seconds?: number; [member: string]: unknown };

/** The nodes that the calls of a node's tools run as. Their members lack what the model gives. */
export function toolNodes(node: ToolNode): ToolNode[] {
  return toolsOf(node).flatMap((tool) => {
    const id = toolNodeId(node.id, nameOfTool(tool));
    const given = tool.arguments ?? {};
    const call: ToolNode =
      tool.operation === undefined
        ? { id, kind: 'run_automation', automation: tool.automation, payload: given }
        : { id, kind: 'call_operation', operation: tool.operation, arguments: given };
    if (tool.approve === undefined) return [call];
    const { question = 'May this tool be called?', ...rest } = tool.approve;
    return [call, { ...rest, id: approvalNodeId(node.id, nameOfTool(tool)), kind: 'approve', question }];
  });
}

/** Problems of `tools` that its schema does not find. */
export function toolProblems(node: Record<string, unknown>): { path: (string | number)[]; message: string }[] {
  if (node.tools === undefined) return [];
  if (!Array.isArray(node.tools)) return [{ path: ['tools'], message: 'must be a list, not a template' }];
  const names = new Set<string>();
  return (node.tools as unknown[]).flatMap((tool, index) => {
    const path = ['tools', index];
    if (typeof tool !== 'object' || tool === null) return [{ path, message: 'must be an object, not a template' }];
    const { automation, operation, name, approve: asked } = tool as NodeTool;
    const fixed = { automation, operation, name, approve: typeof asked === 'object' ? undefined : asked };
    for (const [member, value] of Object.entries(fixed))
      if (typeof value === 'string' && hasExpression(value))
        return [{ path: [...path, member], message: 'must not be a template' }];
    if ((typeof automation === 'string') === (typeof operation === 'string'))
      return [{ path, message: 'exactly one of automation and operation must be given' }];
    const own = nameOfTool(tool as NodeTool);
    if (names.has(own)) return [{ path: [...path, 'name'], message: `another tool has the name "${own}"` }];
    names.add(own);
    return [];
  });
}
