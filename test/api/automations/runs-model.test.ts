import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, test } from 'node:test';
import { AutomationsClient, graphOf, type Run } from '../../support/automations.ts';
import fc from '../../support/fast-check.ts';
import { modelRuns } from '../../support/rounds.ts';
import { type ErrorBody, sendRequest, startTestServer } from '../../support/server.ts';

/*
 *   MODEL_TIMES=8 MODEL_SEED=1 node test/run.ts test/api/automations/runs-model.test.ts
 *
 * Several callers start, signal, cancel, retry and read the same runs through two processes at the same time. After
 * each burst, every run and journal is compared with what the acknowledged requests allow.
 */
const server = await startTestServer();
const beside = await startTestServer({ beside: server });
after(async () => {
  await beside.close();
  await server.close();
});
const app = await server.provision.app();
const client = new AutomationsClient(server, app);
/** Ends after two signals, with their payloads. */
const { id: automation } = await client.createAutomation({
  workflow: graphOf(
    { id: 'first', kind: 'wait_for_signal', name: 'go', on_success: 'second' },
    { id: 'second', kind: 'wait_for_signal', name: 'go', on_success: 'end' },
    { id: 'end', kind: 'complete', result: { first: '{{$nodes.first}}', second: '{{$nodes.second}}' } },
  ),
});

const target = fc.nat(5);
const operation = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('start' as const), key: fc.option(fc.nat(2)), n: fc.nat(1) }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant('signal' as const), target, twice: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('cancel' as const), target, twice: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('retry' as const), target }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('read' as const), target }) },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

type Entry = Awaited<ReturnType<AutomationsClient['journal']>>[number];
type ModelRun = {
  id: string;
  n: number;
  /** Acknowledged signals, by burst: those of one burst may be taken in any order. */
  signals: string[][];
  isCancelled: boolean;
  journal: Entry[];
};

class World {
  readonly runs: ModelRun[] = [];
  readonly keys = new Map<number, { n: number; id: string }>();
  readonly prefix = `${randomInt(2 ** 31)}`;
  #sent = 0;

  /** Requests of one caller after the other go to different processes. */
  send<T>(path: string, body?: unknown, headers: Record<string, string> = {}) {
    this.#sent += 1;
    const { baseUrl } = this.#sent % 2 === 0 ? server : beside;
    const options = { key: app.secretKey, headers, ...(body === undefined ? {} : { body }) };
    return sendRequest<T & Partial<ErrorBody>>(baseUrl, 'POST', `/api/v1${path}`, options);
  }

  async burst(operations: Operation[], number: number): Promise<void> {
    for (const run of this.runs) run.signals.push([]);
    const known = [...this.runs];
    await Promise.all(operations.map((one, index) => this.#apply(one, known, `${number}-${index}`)));
    for (const run of this.runs) await this.#check(run);
  }

  async #apply(one: Operation, known: ModelRun[], name: string): Promise<void> {
    if (one.do === 'start') return this.#start(one);
    const run = known[one.target % Math.max(1, known.length)];
    if (run === undefined) return;
    const path = `/automation_runs/${run.id}`;
    if (one.do === 'signal') {
      const headers = { 'idempotency-key': `${this.prefix}-${name}` };
      const send = () => this.send<Run>(`${path}/signal`, { name: 'go', payload: { name } }, headers);
      const responses = await Promise.all(one.twice ? [send(), send()] : [send()]);
      // A repeated request is one signal, whichever of its responses says so.
      if (responses.some(({ status }) => status === 200)) run.signals.at(-1)?.push(name);
      for (const { status, body, text } of responses)
        if (status !== 200) {
          assert.equal(status, 409, text);
          if (body.error?.code !== 'request_in_progress') await this.#assertEnded(run);
        }
    } else if (one.do === 'cancel') {
      const responses = await Promise.all((one.twice ? [1, 2] : [1]).map(() => this.send<Run>(`${path}/cancel`)));
      const done = responses.filter(({ status }) => status === 200);
      assert.ok(done.length <= 1, 'A run was cancelled twice.');
      if (done.length === 1) {
        assert.equal(done[0]?.body.status, 'cancelled');
        assert.ok(!run.isCancelled, 'A run was cancelled twice.');
        run.isCancelled = true;
      } else await this.#assertEnded(run);
    } else if (one.do === 'retry') {
      const { status, body, text } = await this.send<Run>(`${path}/retry`);
      if (status === 201) {
        assert.equal(body.retried_from, run.id);
        this.#add(body.id, run.n);
        await this.#assertEnded(run);
      } else assert.equal(status, 409, text);
    } else await this.#readJournal(run);
  }

  async #start({ key, n }: { key: number | null; n: number }): Promise<void> {
    const more = key === null ? {} : { idempotency_key: `${this.prefix}-${key}` };
    const { status, body, text } = await this.send<Run>(`/automations/${automation}/invoke`, {
      payload: { n },
      ...more,
    });
    const held = key === null ? undefined : this.keys.get(key);
    if (status === 409) return assert.ok(held === undefined || held.n !== n, text);
    assert.equal(status, 200, text);
    assert.deepEqual(body.payload, { n });
    if (held !== undefined) return assert.deepEqual(held, { n, id: body.id });
    if (key !== null) this.keys.set(key, { n, id: body.id });
    this.#add(body.id, n);
  }

  #add(id: string, n: number): void {
    assert.ok(!this.runs.some((run) => run.id === id), 'Two starts gave one run.');
    this.runs.push({ id, n, signals: [[]], isCancelled: false, journal: [] });
  }

  async #assertEnded({ id }: ModelRun): Promise<void> {
    const { status } = await client.run(id);
    assert.ok(['completed', 'cancelled'].includes(status), `A request was refused, and the run is ${status}.`);
  }

  async #check(run: ModelRun): Promise<void> {
    const signals = run.signals.flat();
    const isEnded = run.isCancelled || signals.length >= 2;
    const now = isEnded ? await client.waitForEnd(run.id) : await client.run(run.id);
    const wanted = run.isCancelled ? ['cancelled'] : isEnded ? ['completed'] : ['pending', 'running'];
    assert.ok(wanted.includes(now.status), `The run is ${now.status}, and may be ${wanted.join(' or ')}.`);
    assert.deepEqual(now.payload, { n: run.n });
    await this.#readJournal(run);
    const count = (type: string) => run.journal.filter((entry) => entry.type === type).length;
    const ends = count('run_completed') + count('run_cancelled') + count('run_failed');
    assert.equal(ends, isEnded ? 1 : 0);
    if (isEnded) assert.match(run.journal.at(-1)?.type ?? '', /^run_(completed|cancelled)$/);
    const completed = run.journal.filter(({ type }) => type === 'node_completed').map((entry) => entry.node_id);
    assert.equal(new Set(completed).size, completed.length, 'A node completed twice.');
    if (now.status !== 'completed') return;
    const taken = Object.values(now.result as Record<string, { name: string }>).map(({ name }) => name);
    // Signals are taken in the order in which they came, burst by burst.
    const order = run.signals.flatMap((burst, at) => burst.map((name) => [name, at] as const));
    const burstOf = (name: string | undefined) => order.find(([each]) => each === name)?.[1] ?? Number.NaN;
    assert.equal(new Set(taken).size, 2);
    assert.deepEqual(taken.map(burstOf), order.map(([, at]) => at).slice(0, 2));
  }

  /** A journal only grows, in order, and is the same page by page. */
  async #readJournal(run: ModelRun): Promise<void> {
    const before = run.journal;
    const entries = await client.journal(run.id);
    assert.deepEqual(entries.slice(0, before.length), before, 'The journal has changed.');
    assert.deepEqual(
      entries.map(({ sequence }) => sequence),
      entries.map((_entry, index) => index + 1),
    );
    if (entries.length > run.journal.length) run.journal = entries;
    const paged: Entry[] = [];
    for (let cursor = ''; ; ) {
      const page = await client.journalPage(run.id, `?limit=3${cursor}`);
      paged.push(...page.data);
      if (page.after_cursor === undefined) break;
      cursor = `&after_cursor=${page.after_cursor}`;
    }
    assert.deepEqual(paged.slice(0, entries.length), entries);
  }
}

const { numRuns, seed } = modelRuns(4);
const bursts = fc.array(fc.array(operation, { minLength: 3, maxLength: 8 }), { minLength: 3, maxLength: 6 });

test('runs and journals that several callers use at the same time follow a model', async (context) => {
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(bursts, async (given) => {
      const world = new World();
      for (const [number, operations] of given.entries()) await world.burst(operations, number);
      runs += world.runs.length;
    }),
    { numRuns, seed, endOnFailure: false },
  );
  context.diagnostic(`seed ${seed}: ${numRuns} sequences, ${runs} runs`);
});
