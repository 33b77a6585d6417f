import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, test } from 'node:test';
import { sweepVersions } from '../../../src/knowledge/versions/sweep.ts';
import { parseId } from '../../../src/lib/ids.ts';
import fc from '../../support/fast-check.ts';
import { type Json, knowledgeOf, type TestIngestion } from '../../support/knowledge.ts';
import { modelRuns } from '../../support/rounds.ts';
import { startTestServer } from '../../support/server.ts';

/*
 *   MODEL_TIMES=20 MODEL_SEED=1 node test/run.ts test/api/knowledge/versions-model.test.ts
 *
 * Random histories of a source: documents are written, changed, deleted and restored, the source is brought back to a
 * time, and days pass. After each step, the documents and all of their versions are those of a model.
 */
const server = await startTestServer();
after(() => server.close());
const { db } = server;
const world = await server.provision.world();
const app = knowledgeOf(server, { key: world.app.secretKey });
const retentionDays = 10;

const word = fc.constantFrom('heron', 'newt', 'marsh');
const pick = fc.nat(9);
const operation = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('put' as const), word }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('change' as const), pick, word }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('delete' as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('restore' as const), pick, version: pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('restoreSource' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pass' as const), days: fc.constantFrom(4, 6) }) },
);
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

/** A state of a document. Steps are counted from 0; the last version of a document that exists has no end. */
type State = { number: number; text: string; start: number; end: number | undefined; isDeletion: boolean };
type Known = { id: string; createdAt: number; states: State[] };
/** A moment before a step, by the clock of the database. */
type Moment = { step: number; at: Date };

const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');

class History {
  readonly #source: string;
  readonly #documents: Known[] = [];
  readonly #moments: Moment[] = [];
  /** How many days have passed since each step. */
  readonly #ages: number[] = [];
  #step = 0;

  constructor(source: string) {
    this.#source = source;
  }

  async take(operation: Operation): Promise<void> {
    const [row] = await db<[{ at: Date }]>`
      select date_trunc('milliseconds', clock_timestamp()) as at, pg_sleep(0.003)`;
    this.#moments.push({ step: this.#step, at: row.at });
    this.#step += 1;
    this.#ages.push(0);
    await this.#do(operation);
    await this.#check();
  }

  async #do(operation: Operation): Promise<void> {
    switch (operation.do) {
      case 'put': {
        const id = await app.push(this.#source, operation.word);
        const state = { number: 1, text: operation.word, start: this.#step, end: undefined, isDeletion: false };
        this.#documents.push({ id, createdAt: this.#step, states: [state] });
        return;
      }
      case 'change': {
        const document = this.#choose(operation.pick, true);
        if (document === undefined) return;
        await this.#wait('PATCH', `/knowledge_documents/${document.id}`, { content: { data: operation.word } });
        return this.#write(document, operation.word);
      }
      case 'delete': {
        const document = this.#choose(operation.pick, true);
        if (document === undefined) return;
        assert.equal((await app.send('DELETE', `/knowledge_documents/${document.id}`)).status, 204);
        return this.#end(document, true);
      }
      case 'restore':
        return this.#restore(operation.pick, operation.version);
      case 'restoreSource':
        return this.#restoreSource(operation.pick);
      case 'pass':
        return this.#pass(operation.days);
    }
  }

  async #restore(chosen: number, version: number): Promise<void> {
    const document = this.#choose(chosen, false);
    const state = document?.states[version % document.states.length];
    if (document === undefined || state === undefined) return;
    const path = `/knowledge_documents/${document.id}/versions/${state.number}/restore`;
    if (state.end === undefined) assert.equal((await app.send('POST', path)).status, 409);
    else {
      await this.#wait('POST', path);
      this.#write(document, state.text);
    }
  }

  async #restoreSource(chosen: number): Promise<void> {
    const moment = this.#moments[chosen % this.#moments.length];
    if (moment === undefined) return;
    const path = `/knowledge_sources/${this.#source}/restore`;
    const body = { at: moment.at.toISOString(), confirm_deletions: true };
    if (this.#ageOf(moment.step) >= retentionDays) {
      assert.equal((await app.send('POST', path, body)).status, 422);
      return;
    }
    await this.#wait('POST', path, body);
    for (const document of this.#documents) {
      const then = document.states.find(({ start, end }) => start <= moment.step && (end ?? Infinity) > moment.step);
      const exists = document.states.at(-1)?.end === undefined;
      if (then !== undefined) this.#write(document, then.text);
      else if (exists && this.#didNotExist(document, moment.step)) this.#end(document, true);
    }
  }

  /** Otherwise, the version of that time was forgotten, and the document stays as it is. */
  #didNotExist({ createdAt, states }: Known, step: number): boolean {
    return createdAt > step || states.some(({ end }) => end !== undefined && end <= step);
  }

  /** Lets days pass: what happened in the source is moved back in time. */
  async #pass(days: number): Promise<void> {
    const source = parseId('source', this.#source) ?? '';
    const back = db`make_interval(days => ${days})`;
    await db`
      update knowledge_versions set started_at = started_at - ${back}, ended_at = ended_at - ${back},
        created_at = created_at - ${back} where source_id = ${source}`;
    await db`
      update knowledge_documents set created_at = created_at - ${back}, version_at = version_at - ${back}
      where source_id = ${source}`;
    await db`update knowledge_sources set versions_from = versions_from - ${back} where id = ${source}`;
    for (const moment of this.#moments) moment.at = new Date(moment.at.getTime() - days * 24 * 3_600_000);
    for (const step of this.#ages.keys()) this.#ages[step] = (this.#ages[step] ?? 0) + days;
    await sweepVersions(db, new Date());
    for (const document of this.#documents)
      document.states = document.states.filter(({ end }) => end === undefined || this.#ageOf(end) < retentionDays);
    this.#documents.splice(0, this.#documents.length, ...this.#documents.filter(({ states }) => states.length > 0));
  }

  #ageOf(step: number): number {
    return this.#ages[Math.min(step, this.#ages.length - 1)] ?? 0;
  }

  #write(document: Known, text: string): void {
    const last = document.states.at(-1);
    if (last === undefined || (last.end === undefined && last.text === text)) return;
    if (last.end === undefined) this.#end(document, false);
    document.states.push({ number: last.number + 1, text, start: this.#step, end: undefined, isDeletion: false });
  }

  #end(document: Known, isDeletion: boolean): void {
    Object.assign(document.states.at(-1) ?? {}, { end: this.#step, isDeletion });
  }

  #choose(chosen: number, mustExist: boolean): Known | undefined {
    const all = this.#documents.filter(({ states }) => !mustExist || states.at(-1)?.end === undefined);
    return all[chosen % all.length];
  }

  async #wait(method: string, path: string, body?: Json): Promise<void> {
    const started = await app.send<TestIngestion>(method, path, body);
    assert.equal(started.status, 201, started.text);
    const ended = await app.waitForIngestion(started.body.id);
    assert.equal(ended.status, 'succeeded', JSON.stringify(ended));
  }

  async #check(): Promise<void> {
    type List = { data: (Json & { version: number; content_hash: string; current: boolean })[] };
    const expected: unknown[] = [];
    const actual: unknown[] = [];
    for (const { id, states } of this.#documents) {
      const { body } = await app.send<List>('GET', `/knowledge_documents/${id}/versions?page_size=100`);
      actual.push(body.data.map((row) => [row.version, row.content_hash, row.current, 'deleted_at' in row]));
      expected.push(
        states
          .map(({ number, text, end, isDeletion }) => [number, hashOf(text), end === undefined, isDeletion])
          .reverse(),
      );
    }
    assert.deepEqual(actual, expected);
    const path = `/knowledge_documents?source=${this.#source}&page_size=100`;
    const { body } = await app.send<{ data: { id: string; content_hash: string }[] }>('GET', path);
    const live = this.#documents.flatMap(({ id, states }) => {
      const last = states.at(-1);
      return last?.end === undefined && last ? [`${id} ${hashOf(last.text)}`] : [];
    });
    assert.deepEqual(body.data.map((row) => `${row.id} ${row.content_hash}`).sort(), live.sort());
  }
}

test('documents and their versions are those of a model, whatever happens to them', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 10, maxLength: 25, size: 'max' }), async (operations) => {
      const source = { org: world.org.id, version_retention_days: retentionDays };
      const history = new History(await app.createSource(source));
      for (const each of operations) await history.take(each);
    }),
    modelRuns(6),
  );
});
