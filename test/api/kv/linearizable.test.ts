import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from '../../support/fast-check.ts';
import { startKv } from '../../support/kv.ts';
import { impossible, isLinearizable, type RecordedOperation } from '../../support/linearizability.ts';
import { modelSeed } from '../../support/rounds.ts';
import { type ApiOptions, sendExactPath, startTestServer } from '../../support/server.ts';
import { startWatch } from '../../support/speed.ts';

/*
 * Several clients of one user write, read and delete the same few keys at the same time, through two processes on one
 * database. For each key, some order of the operations must explain all responses: what a client was told is what
 * happened, and no later read goes back behind it.
 */
const kv = await startKv();
const second = await startTestServer({ beside: kv });
after(async () => {
  await second.close();
  await kv.close();
});
const processes = [kv.baseUrl, second.baseUrl];

const keys = ['a', 'b'];
const clients = 6;
const rounds = Number(process.env.LINEARIZABLE_ROUNDS ?? 3);
const firstSeed = Number(process.env.LINEARIZABLE_SEED ?? modelSeed);

type Entry = { value: string; tag: string };
type State = Entry | null;
type Step = { do: 'put' | 'create' | 'replace' | 'get' | 'unchanged' | 'delete' | 'batch'; key: string };
const step: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom('put', 'create', 'replace', 'get', 'get', 'unchanged', 'delete', 'batch'),
  key: fc.constantFrom(...keys),
});
const schedule = fc.array(fc.array(step, { minLength: 20, maxLength: 30 }), { minLength: clients, maxLength: clients });

test('one order explains the responses to clients that write the same keys concurrently', async () => {
  for (let seed = firstSeed; seed < firstSeed + rounds; seed++) {
    const [steps] = fc.sample(schedule, { seed, numRuns: 1 });
    assert.ok(steps);
    await runSchedule(steps, `repeat with LINEARIZABLE_SEED=${seed}`);
  }
});

async function runSchedule(steps: Step[][], hint: string): Promise<void> {
  const watch = startWatch();
  const app = await kv.provision.app();
  const { token } = await kv.createUser(app);
  const histories = new Map<string, RecordedOperation<State>[]>(keys.map((key) => [key, []]));
  await Promise.all(
    steps.map(async (line, client) => {
      const lastTags = new Map<string, string>();
      const baseUrl = processes[client % processes.length] ?? kv.baseUrl;
      for (const [index, { do: action, key }] of line.entries()) {
        const value = `${client}.${index}`;
        const lastTag = lastTags.get(key);
        const sentAt = watch.passedMs();
        const { apply, tag } = await perform(baseUrl, { token }, action, key, value, lastTag);
        histories.get(key)?.push({ sentAt, answeredAt: watch.passedMs(), apply });
        if (tag !== undefined) lastTags.set(key, tag);
      }
    }),
  );
  for (const [key, history] of histories)
    assert.ok(isLinearizable(history, null), `No order explains key ${key}: ${hint}`);
}

/** Sends one operation. Returns how its response follows from the state of the entry, and the entry's tag if it has it. */
async function perform(
  baseUrl: string,
  caller: ApiOptions,
  action: Step['do'],
  key: string,
  value: string,
  lastTag: string | undefined,
): Promise<{ apply: RecordedOperation<State>['apply']; tag?: string }> {
  const path = `/api/v1/kv/${key}`;
  const send = (method: string, to: string, options: ApiOptions = {}) =>
    // biome-ignore lint/suspicious/noExplicitAny: the responses differ.
    sendExactPath<any>(baseUrl, method, to, { ...caller, ...options });
  const tagOf = (response: { headers: Headers }) => String(response.headers.get('etag'));
  const condition =
    action === 'create' ? { 'if-none-match': '*' } : action === 'replace' ? { 'if-match': lastTag ?? '"none"' } : {};

  switch (action) {
    case 'put':
    case 'create':
    case 'replace': {
      const response = await send('PUT', path, { headers: condition, body: { value } });
      const mayWrite = (state: State) =>
        action === 'put' || (action === 'create' ? state === null : state !== null && state.tag === lastTag);
      if (response.status === 412) return { apply: (state) => (mayWrite(state) ? impossible : state) };
      assert.equal(response.status, 200, response.text);
      const entry = { value, tag: tagOf(response) };
      return { apply: (state) => (mayWrite(state) ? entry : impossible), tag: entry.tag };
    }
    case 'batch': {
      const operations = [{ op: 'put', key, value }];
      const response = await send('POST', '/api/v1/kv_batch', { body: { operations } });
      assert.equal(response.status, 200, response.text);
      const tag = String(response.body.data[0].etag);
      return { apply: () => ({ value, tag }), tag };
    }
    case 'get':
    case 'unchanged': {
      const headers = action === 'unchanged' && lastTag !== undefined ? { 'if-none-match': lastTag } : {};
      const response = await send('GET', path, { headers });
      if (response.status === 304) return { apply: (state) => (state?.tag === lastTag ? state : impossible) };
      if (response.status === 404) return { apply: (state) => (state === null ? state : impossible) };
      assert.equal(response.status, 200, response.text);
      const entry = { value: String(response.body.value), tag: tagOf(response) };
      const isEntry = (state: State) => state?.value === entry.value && state.tag === entry.tag;
      return { apply: (state) => (isEntry(state) ? state : impossible), tag: entry.tag };
    }
    case 'delete': {
      const response = await send('DELETE', path);
      if (response.status === 404) return { apply: (state) => (state === null ? state : impossible) };
      assert.equal(response.status, 204, response.text);
      return { apply: (state) => (state === null ? impossible : null) };
    }
  }
}
