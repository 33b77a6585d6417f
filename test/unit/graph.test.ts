import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkGraph, checkGraphInSteps, readGraph } from '../../src/automations/definitions/graph.ts';

const triage = {
  kind: 'WorkflowGraph',
  version: 1,
  name: 'triage',
  start_node: 'start',
  nodes: [
    { id: 'start', kind: 'trigger', on_success: 'fetch' },
    {
      id: 'fetch',
      kind: 'http_request',
      method: 'GET',
      url: 'https://example.com/bugs/{{$.bug}}',
      retry: { max_attempts: 3, initial_seconds: 1, factor: 2 },
      on_success: 'good',
      on_error: 'note',
    },
    { id: 'good', kind: 'conditional', when: '$nodes.fetch.status = 200', on_true: 'done', on_false: 'note' },
    { id: 'note', kind: 'kv_set', user: '{{$.reporter}}', key: 'bugs/{{$.bug}}', value: 'unreachable' },
    { id: 'done', kind: 'complete', result: { title: '{{$nodes.fetch.json.title}}' } },
  ],
};

/** One node on its own, as a graph. */
function graphOf(...nodes: Record<string, unknown>[]) {
  return { kind: 'WorkflowGraph', version: 1, start_node: nodes[0]?.id, nodes };
}

function problems(graph: unknown): string[] {
  return checkGraph(graph).map(({ path, node, message }) => `${path.join('.')} (${node ?? ''}) ${message}`);
}

test('a good graph has no problems and is read by id', () => {
  assert.deepEqual(problems(triage), []);
  assert.deepEqual([...readGraph(triage).nodes.keys()], ['start', 'fetch', 'good', 'note', 'done']);
});

test('every mistake names its node and member', () => {
  const cases: [unknown, string][] = [
    [null, ' () must be object'],
    [{ ...triage, version: 2 }, 'version () must be equal to constant'],
    [{ ...triage, extra: 1 }, 'extra () is not a known member'],
    [{ ...triage, nodes: [] }, 'nodes () must not have fewer than 1 items'],
    [{ ...triage, start_node: 'nope' }, 'start_node () does not name a node: "nope"'],
    [graphOf({ id: 'a', kind: 'transform' }), 'nodes.0.value (a) is missing'],
    [graphOf({ id: 'a', kind: 'transform', value: 1, colour: 2 }), 'nodes.0.colour (a) is not a known member'],
    [
      graphOf({ id: 'a', kind: 'transform', value: '{{1 +}}' }),
      'nodes.0.value (a) does not parse: Unexpected end of expression at character 3 in "1 +"',
    ],
    [
      graphOf({ id: 'a', kind: 'transform', value: { x: ['{{1'] } }),
      'nodes.0.value.x.0 (a) has {{ without }} in "{{1"',
    ],
    [graphOf({ id: 'a', kind: 'trigger', on_success: 'b' }), 'nodes.0.on_success (a) does not name a node: "b"'],
    [
      graphOf({ id: 'a', kind: 'trigger' }, { id: 'b', kind: 'trigger' }),
      'nodes.1 (b) cannot be reached from start_node',
    ],
    [
      graphOf({ id: 'a', kind: 'trigger', on_success: 'a' }, { id: 'a', kind: 'trigger' }),
      'nodes.1.id (a) is already used by another node',
    ],
    [
      graphOf({ id: 'a', kind: 'http_request', method: 'FETCH', url: 'x' }),
      'nodes.0.method (a) must be one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
    ],
    [graphOf({ id: 'a', kind: 'wait' }), 'nodes.0.seconds (a) exactly one of seconds and until must be given'],
    [graphOf({ id: 'a', kind: 'wait', seconds: 'soon' }), 'nodes.0.seconds (a) must be number'],
    [graphOf({ id: 'a', kind: 'trigger', retry: { max_attempts: 0 } }), 'nodes.0.retry.max_attempts (a) must be >= 1'],
    [graphOf({ id: 'a', kind: 'trigger', retry: { tries: 1 } }), 'nodes.0.retry.max_attempts (a) is missing'],
    [
      graphOf({ id: 'a', kind: 'for_each', items: '$.x +', node: { id: 'b', kind: 'transform', value: 1 } }),
      'nodes.0.items (a) does not parse: Unexpected end of expression at character 5 in "$.x +"',
    ],
    [
      graphOf({ id: 'a', kind: 'for_each', items: '$.x', node: { id: 'b', kind: 'complete' } }),
      'nodes.0.node.kind (b) complete cannot be nested in another node',
    ],
    [
      graphOf({
        id: 'a',
        kind: 'for_each',
        items: '$.x',
        node: { id: 'b', kind: 'transform', value: 1, on_success: 'a' },
      }),
      'nodes.0.node.on_success (b) is not allowed on a nested node',
    ],
    [
      graphOf({ id: 'a', kind: 'for_each', items: '$.x', node: { id: 'a', kind: 'transform', value: 1 } }),
      'nodes.0.node.id (a) is already used by another node',
    ],
    [graphOf({ id: 'a', kind: 'for_each', items: '$.x' }), 'nodes.0.node (a) must be a node'],
    [graphOf({ id: 'a', kind: 'parallel', nodes: [] }), 'nodes.0.nodes (a) must be a list of nodes'],
    [
      graphOf({ id: 'a', kind: 'parallel', on_success: 'b', nodes: [{ id: 'b', kind: 'transform', value: 1 }] }),
      'nodes.0.on_success (a) names a nested node: "b"',
    ],
  ];
  for (const [graph, expected] of cases)
    assert.ok(problems(graph).includes(expected), `${expected}\n${problems(graph).join('\n')}`);
});

test('an unknown kind is named together with the known ones', () => {
  const [problem] = problems(graphOf({ id: 'a', kind: 'telepathy' }));
  assert.match(problem ?? '', /^nodes\.0\.kind \(a\) must be one of trigger, .*fail, not "telepathy"$/);
});

test('a template may replace a number or an enumerated value', () => {
  assert.deepEqual(
    problems(
      graphOf(
        { id: 'a', kind: 'wait', seconds: '{{$.delay}}', on_success: 'b' },
        { id: 'b', kind: 'http_request', method: '{{$.method}}', url: '{{$.url}}', expect_status: '{{$.ok}}' },
      ),
    ),
    [],
  );
});

test('the number of nodes is limited, nested ones counted', () => {
  const nodes = Array.from({ length: 499 }, (_, n) => ({ id: `n${n}`, kind: 'transform', value: n }));
  const graph = (count: number) => graphOf({ id: 'a', kind: 'parallel', nodes: nodes.slice(0, count) });
  assert.deepEqual(problems(graph(499)), []);
  assert.deepEqual(
    problems(graphOf({ id: 'a', kind: 'parallel', nodes: nodes, on_success: 'b' }, { id: 'b', kind: 'trigger' })),
    ['nodes () has more than 500 nodes'],
  );
});

test('a graph of many expressions is checked in steps, one for each of them', () => {
  const value = Array.from({ length: 500 }, (_, i) => `{{$.a${i}}}`);
  const check = checkGraphInSteps(graphOf({ id: 'a', kind: 'transform', value }));
  let steps = 0;
  let step = check.next();
  for (; !step.done; step = check.next()) steps += 1;
  assert.ok(steps >= 500, String(steps));
  assert.deepEqual(step.value, []);
});
