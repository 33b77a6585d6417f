import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from '../../support/fast-check.ts';
import { asDeveloper, startKv } from '../../support/kv.ts';
import { modelRuns } from '../../support/rounds.ts';
import type { ApiOptions } from '../../support/server.ts';

/*
 * Random sequences of operations by several callers, each response held to a model that is a map and a few lines of rules.
 */
const userBytesMax = 60;
const kv = await startKv({ QUARRY_KV_USER_BYTES_MAX: String(userBytesMax) });
after(() => kv.close());

type Row = { value: string; tag: string };
type Model = { rows: Map<string, Row> };
type Owner = 0 | 1;
type Operation =
  | { do: 'post'; owner: Owner; by: 'user' | 'server' | 'developer'; key: string; value: string }
  | { do: 'put'; owner: Owner; by: 'user' | 'server' | 'developer'; key: string; value: string }
  | { do: 'putIf'; owner: Owner; key: string; value: string; match: 'current' | 'stale' | 'any' | 'none' }
  | { do: 'get'; owner: Owner; by: 'user' | 'server' | 'developer'; key: string }
  | { do: 'delete'; owner: Owner; by: 'user' | 'server' | 'developer'; key: string }
  | { do: 'list'; owner: Owner | undefined; prefix: string };

const keys = fc.constantFrom('a', 'a/', 'a/b', 'ž', '%', '%41', 'a b', '..');
const contents = fc.constantFrom('x', 'yy', 'zzzzzzzzzz', 'ž'.repeat(12), 'w'.repeat(58));
const owners = fc.constantFrom<Owner>(0, 1);
const callers = fc.constantFrom<'user' | 'server' | 'developer'>('user', 'server', 'developer');
const operations: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({ do: fc.constantFrom('post', 'put'), owner: owners, by: callers, key: keys, value: contents }),
  fc.record({
    do: fc.constant('putIf'),
    owner: owners,
    key: keys,
    value: contents,
    match: fc.constantFrom('current', 'stale', 'any', 'none'),
  }),
  fc.record({ do: fc.constantFrom('get', 'delete'), owner: owners, by: callers, key: keys }),
  fc.record({
    do: fc.constant('list'),
    owner: fc.constantFrom(0, 1, undefined),
    prefix: fc.constantFrom('', 'a', '%'),
  }),
) as fc.Arbitrary<Operation>;

test('any sequence of operations behaves like a map', async () => {
  await fc.assert(fc.asyncProperty(fc.array(operations, { minLength: 5, maxLength: 40 }), runSequence), {
    ...modelRuns(25),
    endOnFailure: true,
  });
});

async function runSequence(sequence: Operation[]): Promise<void> {
  const app = await kv.provision.app();
  const users = [await kv.createUser(app), await kv.createUser(app)] as const;
  const models: [Model, Model] = [{ rows: new Map() }, { rows: new Map() }];
  const created: { owner: Owner; key: string }[] = [];

  for (const operation of sequence) {
    if (operation.do === 'list') {
      await checkList(operation.owner, operation.prefix);
      continue;
    }
    const { owner, key } = operation;
    const model = models[owner];
    const by = 'by' in operation ? operation.by : 'user';
    const caller: ApiOptions =
      by === 'user' ? { token: users[owner].token } : by === 'server' ? { key: app.secretKey } : asDeveloper(app);
    const named = by === 'user' ? {} : { user: users[owner].id };
    const path = `/api/v1/kv/${encodeURIComponent(key)}`;
    const current = model.rows.get(key);

    if (operation.do === 'get') {
      const query = by === 'user' ? '' : `?user=${users[owner].id}`;
      const response = await kv.api('GET', `${path}${query}`, caller);
      assert.deepEqual(
        [response.status, response.body.value, response.headers.get('etag')],
        current ? [200, current.value, current.tag] : [404, undefined, null],
      );
    } else if (operation.do === 'delete') {
      const response = await kv.api('DELETE', path, { ...caller, body: by === 'user' ? undefined : named });
      assert.equal(response.status, current ? 204 : 404);
      model.rows.delete(key);
    } else {
      const { value } = operation;
      const condition = operation.do === 'putIf' ? conditionOf(operation.match, current) : { headers: {}, holds: true };
      const response =
        operation.do === 'post'
          ? await kv.api('POST', '/api/v1/kv', { ...caller, body: { key, value, ...named } })
          : await kv.api('PUT', path, {
              ...caller,
              headers: { ...caller.headers, ...condition.headers },
              body: { value, ...named },
            });
      const expected = expectedWrite(operation.do, model, key, value, condition.holds);
      assert.deepEqual([response.status, response.body.error?.code], expected);
      if (response.status !== 200) continue;
      if (!current) created.push({ owner, key });
      model.rows.set(key, { value, tag: String(response.headers.get('etag')) });
    }
  }
  await checkList(undefined, '');
  for (const owner of [0, 1] as const) {
    const response = await kv.api('GET', '/api/v1/kv', { token: users[owner].token });
    const listed = response.body.data.map((entry: { key: string; value: string }) => [entry.key, entry.value]);
    assert.deepEqual(new Map(listed), new Map([...models[owner].rows].map(([key, row]) => [key, row.value])));
  }

  async function checkList(owner: Owner | undefined, prefix: string): Promise<void> {
    const filters = [
      ...(owner === undefined ? [] : [`user=${users[owner].id}`]),
      ...(prefix === '' ? [] : [`key=${encodeURIComponent(prefix)}`]),
    ];
    const response = await kv.api('GET', `/api/v1/kv?page_size=100&${filters.join('&')}`, { key: app.secretKey });
    // Newest creation first: a key that was deleted and written again is new.
    const seen = new Set<string>();
    const expected = created
      .toReversed()
      .filter((row) => {
        const name = `${row.owner} ${row.key}`;
        if (seen.has(name)) return false;
        seen.add(name);
        return models[row.owner].rows.has(row.key);
      })
      .filter((row) => (owner === undefined || row.owner === owner) && row.key.startsWith(prefix))
      .map((row) => [users[row.owner].id, row.key]);
    assert.deepEqual(
      response.body.data.map((entry: { user: string; key: string }) => [entry.user, entry.key]),
      expected,
    );
    assert.equal(response.body.total_entries, expected.length);
  }
}

function conditionOf(match: 'current' | 'stale' | 'any' | 'none', current: Row | undefined) {
  if (match === 'none') return { headers: { 'if-none-match': '*' }, holds: !current };
  if (match === 'any') return { headers: { 'if-match': '*' }, holds: current !== undefined };
  if (match === 'stale' || !current) return { headers: { 'if-match': '"stale"' }, holds: false };
  return { headers: { 'if-match': current.tag }, holds: true };
}

function expectedWrite(kind: 'post' | 'put' | 'putIf', model: Model, key: string, value: string, holds: boolean) {
  const current = model.rows.get(key);
  if (kind === 'post' && current) return [422, 'already_exists'];
  if (!holds) return [412, 'precondition_failed'];
  const used = [...model.rows].reduce((sum, [each, row]) => sum + bytes(each) + bytes(row.value), 0);
  const change = bytes(value) - (current ? bytes(current.value) : -bytes(key));
  return change > 0 && used + change > userBytesMax ? [422, 'quota_exceeded'] : [200, undefined];
}

function bytes(text: string): number {
  return Buffer.byteLength(text);
}
