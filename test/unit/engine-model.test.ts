import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkGraph } from '../../src/automations/definitions/graph.ts';
import { decide } from '../../src/automations/engine/decide.ts';
import { foldJournal } from '../../src/automations/engine/fold.ts';
import fc from '../support/fast-check.ts';
import { modelRuns } from '../support/rounds.ts';
import { Simulation } from './support/simulation.ts';

type Node = Record<string, unknown>;

/** A node of any kind, with edges to any of `count` nodes; nested ones have none. */
function nodeArbitrary(id: string, count: number, nested: boolean): fc.Arbitrary<Node> {
  const edge = fc.integer({ min: 0, max: count - 1 }).map((n) => `n${n}`);
  const edges = nested ? fc.constant({}) : fc.record({ on_success: edge, on_error: edge }, { requiredKeys: [] });
  const retry = fc.option(
    fc.record({ max_attempts: fc.integer({ min: 1, max: 3 }), initial_seconds: fc.constantFrom(0, 1, 5) }),
    { nil: undefined },
  );
  const timeout = fc.option(fc.constantFrom(3, 20), { nil: undefined });
  const kinds: fc.Arbitrary<Node>[] = [
    fc.constant({ kind: 'transform', value: 1 }),
    fc.constant({ kind: 'http_request', method: 'GET', url: 'http://x' }),
    fc.record({ kind: fc.constant('wait'), seconds: fc.constantFrom(0, 1, 10) }),
    fc.constant({ kind: 'wait_for_signal', name: 's' }),
    fc.constant({ kind: 'run_automation', automation: 'x' }),
  ];
  if (!nested)
    kinds.push(
      fc.record({ kind: fc.constant('conditional'), when: fc.constant('true'), on_true: edge, on_false: edge }),
      fc.constant({ kind: 'complete' }),
      fc.constant({ kind: 'fail', message: 'no' }),
      fc.record({
        kind: fc.constant('for_each'),
        items: fc.constant('[]'),
        concurrency: fc.integer({ min: 1, max: 3 }),
        node: nodeArbitrary(`${id}i`, count, true),
      }),
      fc
        .integer({ min: 1, max: 3 })
        .chain((inner) =>
          fc.tuple(...Array.from({ length: inner }, (_, n) => nodeArbitrary(`${id}p${n}`, count, true))),
        )
        .map((nodes) => ({ kind: 'parallel', nodes })),
    );
  return fc
    .tuple(fc.oneof(...kinds), edges, retry, timeout)
    .map(([node, edgeMembers, retries, timeoutSeconds]) =>
      Object.fromEntries(
        Object.entries({ id, ...node, ...edgeMembers, retry: retries, timeout_seconds: timeoutSeconds }).filter(
          ([, value]) => value !== undefined,
        ),
      ),
    );
}

const graphArbitrary = fc
  .integer({ min: 1, max: 6 })
  .chain((count) => fc.tuple(...Array.from({ length: count }, (_, n) => nodeArbitrary(`n${n}`, count, false))))
  .map((nodes) => ({ kind: 'WorkflowGraph', version: 1, start_node: 'n0', nodes }));

/** What the world does next: each number chooses among what is possible then. */
const choices = fc.array(fc.nat(), { minLength: 200, maxLength: 400 });

test('any graph under any interleaving, with crashes anywhere, keeps the promises of the journal', () => {
  fc.assert(
    fc.property(graphArbitrary, choices, fc.boolean(), (graph, numbers, cancels) => {
      // Unreachable nodes are the only mistake that the generator makes.
      for (const problem of checkGraph(graph)) assert.match(problem.message, /cannot be reached/);
      const run = new Simulation(graph);
      run.journalEntriesMax = 150;
      let at = 0;
      const choose = (bound: number): number => (numbers[at++ % numbers.length] ?? 0) % bound;
      run.resultOf = ({ nodeId }) =>
        /^n\d+$/.test(nodeId) && run.graph.nodes.get(nodeId)?.kind === 'conditional'
          ? { result: choose(2) === 0 }
          : { code: 'c', message: 'm', nodeId };

      for (let step = 0; step < 2_000; step++) {
        const decision = decide(run.graph, run.state, run.around());
        if (decision.ended) break;
        for (const node of run.graph.nodes.values()) {
          if (choose(4) === 0) run.failures.set(node.id, [{ code: 'boom', message: 'x' }]);
          else run.failures.delete(node.id);
          if (node.kind === 'for_each')
            run.items.set(
              node.id,
              Array.from({ length: choose(5) }, (_, n) => n),
            );
        }
        const act = choose(20);
        if (act === 0) run.crash();
        else if (act === 1 && run.state.signals.length < 3) run.signal('s', step);
        else if (act === 2 && cancels && step > 20) run.cancel();
        else if (act === 3 && decision.wakeAtMs !== undefined) run.nowMs = Math.max(run.nowMs, decision.wakeAtMs);
        else if (act === 4 && run.fire(decision.wakeAtMs)) checkState(run);
        else {
          const command = decision.commands[choose(Math.max(1, decision.commands.length))];
          if (command) run.execute(command);
          else if (decision.wakeAtMs !== undefined) run.nowMs = decision.wakeAtMs;
          else run.signal('s', step);
        }
        checkState(run);
      }
      checkJournal(run);
    }),
    modelRuns(300),
  );
});

/** The state is what the journal says, and no fan-out has more at work than it may. */
function checkState(run: Simulation): void {
  assert.deepEqual(run.state, foldJournal(run.graph, run.journal));
  for (const execution of run.state.active.values()) {
    if (execution.parent !== undefined) assert.ok(run.state.active.has(execution.parent), 'an orphan is at work');
    if (!execution.fanOut) continue;
    const atWork = [...run.state.active.values()].filter((other) => other.parent === execution.commandId).length;
    assert.ok(atWork <= execution.fanOut.concurrency, 'more at work than allowed');
  }
  const top = [...run.state.active.values()].filter((execution) => execution.parent === undefined).length;
  assert.ok(top + (run.state.cursor === undefined ? 0 : 1) <= 1, 'two nodes at the top');
}

/** Every run ends; every node ends once; attempts, timers and signals are accounted for. */
function checkJournal(run: Simulation): void {
  assert.ok(['completed', 'failed', 'cancelled'].includes(run.state.status), 'the run did not end');
  assert.ok(run.journal.length <= 160, 'the journal outgrew its limit');
  assert.deepEqual(
    run.journal.map((entry) => entry.sequence),
    run.journal.map((_, index) => index + 1),
  );
  assert.equal(run.journal.filter((entry) => /^run_(completed|failed|cancelled)$/.test(entry.type)).length, 1);
  assert.match(run.last().type, /^run_(completed|failed|cancelled)$/);
  const taken = run.journal.flatMap((entry) => entry.record.metadata?.signal_sequence ?? []);
  assert.equal(new Set(taken).size, taken.length, 'a signal was taken twice');
  const byCommand = Map.groupBy(
    run.journal.filter((entry) => entry.commandId !== undefined),
    (entry) => entry.commandId,
  );
  for (const entries of byCommand.values()) {
    assert.equal(entries[0]?.type, 'node_started');
    assert.equal(new Set(entries.map((entry) => entry.nodeId)).size, 1);
    const ends = entries.filter(
      (entry) =>
        entry.type === 'node_completed' || (entry.type === 'node_failed' && entry.record.metadata?.will_retry !== true),
    );
    assert.ok(ends.length <= 1, 'a node ended twice');
    if (ends[0]) assert.equal(entries.at(-1), ends[0], 'something follows the end of a node');
    const starts = entries.filter((entry) => entry.type === 'node_started');
    assert.deepEqual(
      starts.map((entry) => entry.record.metadata?.attempt),
      starts.map((_, index) => index + 1),
    );
    const max = run.graph.nodes.get(entries[0]?.nodeId ?? '')?.retry?.max_attempts ?? 1;
    assert.ok(starts.length <= max, 'more attempts than allowed');
  }
}
