import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decide } from '../../src/automations/engine/decide.ts';
import { foldJournal } from '../../src/automations/engine/fold.ts';
import { retryDelayMs } from '../../src/automations/engine/retry.ts';
import type { NodeError } from '../../src/automations/nodes/kind.ts';
import { Simulation } from './support/simulation.ts';

/** A graph of the given nodes, the first of them the start. */
function graphOf(...nodes: Record<string, unknown>[]) {
  return { kind: 'WorkflowGraph', version: 1, start_node: nodes[0]?.id, nodes };
}
const step = (id: string, more: Record<string, unknown> = {}) => ({ id, kind: 'transform', value: id, ...more });
const boom: NodeError = { code: 'boom', message: 'It went wrong.' };

test('nodes follow each other, and the last output is the result', async () => {
  const run = new Simulation(graphOf(step('a', { on_success: 'b' }), step('b')));
  run.drive();
  assert.deepEqual(run.types(), [
    'run_started',
    'node_started a',
    'node_completed a',
    'node_started b',
    'node_completed b',
    'run_completed',
  ]);
  assert.equal(run.state.status, 'completed');
  assert.deepEqual(run.last().record.payload, 'b');
  assert.deepEqual(run.state.outputs, { a: 'a', b: 'b' });
});

test('complete and fail end the run with their result and error', () => {
  const completed = new Simulation(graphOf({ id: 'a', kind: 'complete', result: { x: 1 } }));
  completed.results.set('a', { x: 1 });
  completed.drive();
  assert.deepEqual([completed.state.status, completed.last().record.payload], ['completed', { x: 1 }]);

  const failed = new Simulation(graphOf({ id: 'a', kind: 'fail', message: 'no', on_error: 'b' }, step('b')));
  failed.results.set('a', { code: 'failed', message: 'no' });
  failed.drive();
  assert.deepEqual(failed.last().record.payload, { code: 'failed', message: 'no', node_id: 'a' });
  assert.equal(failed.state.status, 'failed');
});

test('a conditional goes one way', () => {
  for (const result of [true, false]) {
    const run = new Simulation(
      graphOf({ id: 'if', kind: 'conditional', when: 'x', on_true: 'yes', on_false: 'no' }, step('yes'), step('no')),
    );
    run.results.set('if', { result });
    run.drive();
    assert.ok(run.types().includes(`node_completed ${result ? 'yes' : 'no'}`));
    assert.ok(!run.types().includes(`node_started ${result ? 'no' : 'yes'}`));
  }
});

test('a failed node is tried again after growing waits, under one command, then follows on_error', () => {
  const run = new Simulation(
    graphOf(
      step('a', { retry: { max_attempts: 3, initial_seconds: 1, factor: 3 }, on_error: 'b', on_success: 'b' }),
      step('b'),
    ),
  );
  run.failures.set('a', [boom, boom, boom]);
  run.drive();
  assert.deepEqual(run.waits, [1_000, 3_000]);
  const ofA = run.journal.filter((entry) => entry.nodeId === 'a');
  assert.equal(new Set(ofA.map((entry) => entry.commandId)).size, 1);
  assert.deepEqual(
    ofA.map((entry) => `${entry.type} ${entry.record.metadata?.attempt}`),
    [
      'node_started 1',
      'node_failed 1',
      'node_retry_scheduled 1',
      'node_started 2',
      'node_failed 2',
      'node_retry_scheduled 2',
      'node_started 3',
      'node_failed 3',
    ],
  );
  assert.deepEqual(run.state.outputs.a, { error: boom });
  assert.equal(run.state.status, 'completed');
});

test('a successful retry continues as if nothing failed', () => {
  const run = new Simulation(graphOf(step('a', { retry: { max_attempts: 2 } })));
  run.failures.set('a', [boom]);
  run.drive();
  assert.deepEqual(run.waits, [1_000]);
  assert.equal(run.state.status, 'completed');
});

test('without on_error a failed node fails the run and is named', () => {
  const run = new Simulation(graphOf(step('a')));
  run.failures.set('a', [boom]);
  run.drive();
  assert.deepEqual(run.last().record.payload, { ...boom, node_id: 'a' });
});

test('retry waits are bounded by a day', () => {
  assert.equal(retryDelayMs({}, 1), 1_000);
  assert.equal(retryDelayMs({ initial_seconds: 2, factor: 2 }, 4), 16_000);
  assert.equal(retryDelayMs({ initial_seconds: 86_400, factor: 100 }, 90), 86_400_000);
});

test('a wait fires at its time and not before', () => {
  const run = new Simulation(graphOf({ id: 'w', kind: 'wait', seconds: 60, on_success: 'b' }, step('b')));
  run.drive({ sleep: false });
  assert.equal(run.state.active.size, 1);
  run.advance(59_999);
  run.drive({ sleep: false });
  assert.equal(run.state.active.size, 1);
  run.advance(1);
  run.drive({ sleep: false });
  assert.deepEqual(run.types().slice(1, 5), ['node_started w', 'timer_started w', 'timer_fired w', 'node_completed w']);
  const timers = run.journal.filter((entry) => entry.timerId !== undefined).map((entry) => entry.timerId);
  assert.equal(timers.length, 2);
  assert.equal(new Set(timers).size, 1);
  assert.equal(run.state.status, 'completed');
});

test('a signal wakes the wait; one that comes early, even before the run started, is kept', () => {
  const graph = graphOf({ id: 'w', kind: 'wait_for_signal', name: 'go' });
  const late = new Simulation(graph);
  late.drive({ sleep: false });
  late.signal('other', 1);
  late.drive({ sleep: false });
  assert.equal(late.state.status, 'running');
  late.signal('go', { ok: true });
  late.drive();
  assert.deepEqual(late.last().record.payload, { ok: true });
  assert.deepEqual(
    late.state.signals.map((signal) => signal.name),
    ['other'],
  );

  const early = new Simulation(graph);
  early.signal('go', 7);
  early.drive();
  assert.deepEqual(early.last().record.payload, 7);
});

test('each signal is taken once, in the order of the waits', () => {
  const waits = ['x', 'y'].map((id) => ({ id, kind: 'wait_for_signal', name: 'go' }));
  const run = new Simulation(graphOf({ id: 'p', kind: 'parallel', nodes: waits }));
  run.drive({ sleep: false });
  run.signal('go', 1);
  run.drive({ sleep: false });
  assert.equal(run.state.status, 'running');
  run.signal('go', 2);
  run.drive();
  assert.deepEqual(run.last().record.payload, { x: 1, y: 2 });
  assert.deepEqual(run.state.signals, []);
});

test('a signal that does not come leads to on_timeout, or fails the node', () => {
  const wait = { id: 'w', kind: 'wait_for_signal', name: 'go', timeout_seconds: 5 };
  const led = new Simulation(graphOf({ ...wait, on_timeout: 'late', on_success: 'ok' }, step('late'), step('ok')));
  led.drive();
  assert.ok(led.types().includes('signal_timed_out w'));
  assert.ok(led.types().includes('node_completed late'));
  assert.ok(!led.types().includes('node_started ok'));

  const failed = new Simulation(graphOf(wait));
  failed.drive();
  assert.equal((failed.last().record.payload as NodeError).code, 'timeout');
});

test('for_each keeps to its concurrency and gives outputs in order', () => {
  const run = new Simulation(
    graphOf({ id: 'each', kind: 'for_each', items: 'x', concurrency: 3, node: { id: 'in', kind: 'http_request' } }),
  );
  run.items.set('each', [10, 20, 30, 40, 50, 60, 70]);
  let most = 0;
  run.onStep = () => {
    const inside = [...run.state.active.values()].filter((execution) => execution.nodeId === 'in');
    most = Math.max(most, inside.length);
  };
  run.resultOf = (execution) => `done ${execution.index}`;
  run.drive();
  assert.equal(most, 3);
  assert.deepEqual(
    run.last().record.payload,
    [0, 1, 2, 3, 4, 5, 6].map((index) => `done ${index}`),
  );
});

test('for_each of nothing gives an empty list', () => {
  const run = new Simulation(graphOf({ id: 'each', kind: 'for_each', items: 'x', node: step('in') }));
  run.items.set('each', []);
  run.drive();
  assert.deepEqual(run.last().record.payload, []);
});

test('a nested failure fails the whole node immediately, and the others no longer count', () => {
  const run = new Simulation(
    graphOf(
      { id: 'p', kind: 'parallel', on_error: 'b', nodes: [step('x'), { id: 'w', kind: 'wait', seconds: 1_000 }] },
      step('b'),
    ),
  );
  run.failures.set('x', [boom]);
  run.drive({ newestFirst: true });
  assert.deepEqual(run.waits, []);
  assert.deepEqual(run.state.outputs.p, { error: { code: 'boom', message: 'Node "x" failed: It went wrong.' } });
  assert.equal(run.state.status, 'completed');
  assert.equal(run.state.active.size, 0);
});

test('fan-outs may be nested', () => {
  const inner = { id: 'inner', kind: 'parallel', nodes: [step('x'), step('y')] };
  const run = new Simulation(graphOf({ id: 'outer', kind: 'for_each', items: 'x', node: inner }));
  run.items.set('outer', [1, 2]);
  run.drive();
  assert.deepEqual(run.last().record.payload, [
    { x: 'x', y: 'y' },
    { x: 'x', y: 'y' },
  ]);
});

test('a node that exceeds its time fails with timeout, in any activity', () => {
  for (const node of [
    { id: 'a', kind: 'http_request' },
    { id: 'a', kind: 'wait', seconds: 100 },
    { id: 'a', kind: 'run_automation', automation: 'x' },
    { id: 'a', kind: 'parallel', nodes: [{ id: 'w', kind: 'wait', seconds: 100 }] },
  ]) {
    const run = new Simulation(graphOf({ ...node, timeout_seconds: 10 }));
    run.stuck = true;
    run.drive({ sleep: false });
    run.advance(9_999);
    run.drive({ sleep: false });
    assert.equal(run.state.status, 'running', node.kind);
    run.advance(1);
    run.drive({ sleep: false });
    assert.deepEqual(run.last().record.payload, {
      code: 'timeout',
      message: 'The node took longer than 10 seconds.',
      node_id: 'a',
    });
  }
});

test('a run over its time fails', () => {
  const run = new Simulation(graphOf({ id: 'w', kind: 'wait', seconds: 100 }));
  run.timeoutSeconds = 30;
  run.drive();
  assert.deepEqual(run.waits, [30_000]);
  assert.equal((run.last().record.payload as NodeError).code, 'timeout');
});

test('a loop is ended by the limit of the journal', () => {
  const run = new Simulation(graphOf(step('a', { on_success: 'b' }), step('b', { on_success: 'a' })));
  run.journalEntriesMax = 100;
  run.drive();
  assert.equal((run.last().record.payload as NodeError).code, 'journal_limit');
  assert.ok(run.journal.length <= 100);
});

test('an output over 256 KiB fails the node', () => {
  const run = new Simulation(graphOf(step('a')));
  run.results.set('a', 'x'.repeat(256 * 1024));
  run.drive();
  assert.equal((run.last().record.payload as NodeError).code, 'output_too_large');
});

test('a child run is started once and its end ends the node', () => {
  const run = new Simulation(graphOf({ id: 'c', kind: 'run_automation', automation: 'x' }));
  run.drive({ sleep: false });
  assert.deepEqual(run.types(), [
    'run_started',
    'node_started c',
    'child_run_started c',
    'child_run_ended c',
    'node_completed c',
    'run_completed',
  ]);
});

test('a cancelled run does nothing more', () => {
  const run = new Simulation(graphOf({ id: 'w', kind: 'wait', seconds: 100 }));
  run.drive({ sleep: false });
  run.cancel();
  assert.deepEqual(decide(run.graph, run.state, run.around()), { ended: true });
  assert.equal(run.state.active.size, 0);
});

test('an entry out of its place is refused', () => {
  const run = new Simulation(graphOf(step('a')));
  run.drive();
  assert.throws(() => foldJournal(run.graph, run.journal.slice(1)), /does not follow/);
});
