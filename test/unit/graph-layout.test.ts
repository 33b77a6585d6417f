import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type GraphNode, layOut, nodeHeight, nodeWidth } from '../../console/src/pages/automations/layout.ts';
import fc from '../support/fast-check.ts';

/** Graphs of up to 20 nodes, each reached from an earlier one, with any further edges, also back. */
const graphs = fc.integer({ min: 1, max: 20 }).chain((size) =>
  fc
    .array(fc.record({ from: fc.nat(size - 1), to: fc.nat(size - 1), kind: fc.constantFrom('on_error', 'on_true') }), {
      maxLength: 15,
    })
    .map((edges) => {
      const nodes = Array.from({ length: size }, (_, at): GraphNode & Record<string, string> => ({
        id: `n${at}`,
        kind: 'transform',
        ...(at + 1 < size ? { on_success: `n${at + 1}` } : {}),
      }));
      for (const { from, to, kind } of edges) {
        const node = nodes[from];
        if (node) node[kind] = `n${to}`;
      }
      return { start_node: 'n0', nodes };
    }),
);

test('every node is drawn once, inside the picture, over no other; no edge passes through a node', () => {
  fc.assert(
    fc.property(graphs, (workflow) => {
      const { placed, edges, width, height } = layOut(workflow);
      assert.equal(new Set(placed.map(({ node }) => node.id)).size, workflow.nodes.length);
      for (const { x, y } of placed) {
        assert.ok(x >= 0 && x + nodeWidth <= width && y >= 0 && y + nodeHeight <= height);
        const over = placed.filter((other) => Math.abs(other.x - x) < nodeWidth && Math.abs(other.y - y) < nodeHeight);
        assert.equal(over.length, 1);
      }
      for (const { through } of edges)
        for (const { x, y } of through)
          assert.ok(
            placed.every((one) => x < one.x || x > one.x + nodeWidth || y < one.y || y > one.y + nodeHeight),
            'an edge passes through a node',
          );
    }),
    { numRuns: 300 },
  );
});

test('what follows stands below, and a workflow without a graph is empty', () => {
  const nodes = [
    { id: 'a', kind: 'trigger', on_success: 'b', on_error: 'c' },
    { id: 'b', kind: 'transform', on_success: 'c' },
    { id: 'c', kind: 'complete' },
  ];
  const { placed } = layOut({ start_node: 'a', nodes });
  const rows = Object.fromEntries(placed.map(({ node, y }) => [node.id, y]));
  assert.ok((rows.a ?? 0) < (rows.b ?? 0) && (rows.b ?? 0) < (rows.c ?? 0));
  assert.deepEqual(layOut(null).placed, []);
});
