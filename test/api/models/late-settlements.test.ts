import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Transaction } from '../../../src/db/database.ts';
import { ConnectionError } from '../../../src/db/errors.ts';
import { createSettlements } from '../../../src/llm/settlements.ts';
import { AutomationsClient, graphOf } from '../../support/automations.ts';
import { startLanguageModel } from '../../support/language-model.ts';
import { startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

/* A reservation is replaced by what was used, even if the database does not respond at that moment. */

const model = await startLanguageModel();
model.script = () => ({ text: 'Hello.', usage: [60, 40] });
const env = { QUARRY_LLM_URL: model.url, QUARRY_LLM_MODEL: 'house' };
const server = await startTestServer({ env, logLevel: 'fatal' });
after(async () => {
  await server.close();
  await model.close();
});
const { api, db, services } = server;

async function createBudget() {
  const app = await server.provision.app();
  const body = { subject: 'app', period: 'total', tokens: 100_000 };
  const made = await api<{ id: string }>('POST', '/api/v1/model_budgets', { key: app.secretKey, body });
  assert.equal(made.status, 201, made.text);
  const tokens = async () => {
    const path = `/api/v1/model_budgets/${made.body.id}/uses`;
    const { body: uses } = await api<{ data: { tokens: number }[] }>('GET', path, { key: app.secretKey });
    return uses.data[0]?.tokens;
  };
  return { app, tokens };
}

/** PostgreSQL refuses to lower what is used, as if it were out of connections, and counts how often. */
async function refuseSettlements(): Promise<void> {
  await db`create sequence if not exists refusals`;
  await db`create or replace function refuse_settlement() returns trigger language plpgsql as
    $$ begin perform nextval('refusals'); raise exception 'out of connections' using errcode = '53300'; end $$`;
  await db`create trigger refuse_settlement before update on model_budget_uses
    for each row when (new.tokens < old.tokens) execute function refuse_settlement()`;
}

test('a call whose settlement fails succeeds, and its budgets have what it used soon after', async () => {
  const { app, tokens } = await createBudget();
  await refuseSettlements();
  const node = { id: 'g', kind: 'generate', messages: [{ role: 'user', content: 'Hi.' }], tokens: 5_000 };
  const run = await new AutomationsClient(server, app).runGraph(graphOf(node), {});
  assert.equal(run.status, 'completed', JSON.stringify(run));
  assert.ok(((await tokens()) ?? 0) >= 5_000, 'reserved');
  const quota = async () =>
    (await api<{ tokens: { used: number } }>('GET', '/api/v1/usage', { key: app.secretKey })).body.tokens.used;
  assert.ok((await quota()) >= 5_000, 'reserved for the day');
  await db`drop trigger refuse_settlement on model_budget_uses`;
  await until(async () => (await tokens()) === 100);
  assert.equal(await quota(), 100);
});

test('a server that stops settles what it could not settle before', async () => {
  const { app, tokens } = await createBudget();
  const refusals = async () => (await db<[{ count: number }]>`select last_value as count from refusals`)[0].count;
  const before = await refusals();
  const beside = await startTestServer({ beside: server, env, logLevel: 'fatal' });
  try {
    await refuseSettlements();
    const body = { input: 'Hi.', max_output_tokens: 5_000 };
    const { status, text } = await beside.api('POST', '/v1/responses', { token: app.secretKey, body });
    assert.equal(status, 200, text);
    // By now, the next attempt is seconds away.
    await until(async () => (await refusals()) >= before + 4);
    assert.ok(((await tokens()) ?? 0) >= 5_000, 'reserved');
    await db`drop trigger refuse_settlement on model_budget_uses`;
  } finally {
    await beside.close();
  }
  assert.equal(await tokens(), 100);
});

test('a settlement whose response was lost takes effect once, and one that was not committed does so too', async () => {
  await db`create table settled (name text)`;
  const lost = new ConnectionError('CONNECTION_CLOSED', 'lost');
  const faults = [{ commits: true }, { commits: false }];
  const begin = async (work: (tx: Transaction) => Promise<unknown>) => {
    const fault = faults.shift();
    await services.db.begin(async (tx) => {
      await work(tx);
      if (fault?.commits === false) throw lost;
    });
    if (fault !== undefined) throw lost;
  };
  const broken = new Proxy(services.db, {
    get: (target, member) => (member === 'begin' ? begin : Reflect.get(target, member)),
  });
  const settlements = createSettlements({ db: broken, log: services.log });
  for (const name of ['committed', 'not committed'])
    await settlements.settle(async (tx) => {
      await tx`insert into settled values (${name})`;
    });
  // They are repeated in this order.
  await until(async () => (await db`select from settled where name = 'not committed'`).count > 0);
  assert.deepEqual(
    (await db<{ name: string }[]>`select name from settled order by name`).map(({ name }) => name),
    ['committed', 'not committed'],
  );
});

test('what a call reserved is released if the response to the commit was lost, and only if it was committed', async () => {
  await db`create table reserved (name text primary key)`;
  const lost = new ConnectionError('CONNECTION_CLOSED', 'lost');
  const faults = ['committed', 'not committed'];
  const begin = async (work: (tx: Transaction) => Promise<unknown>) => {
    const fault = faults.shift();
    const result = await services.db.begin(async (tx) => {
      const reserved = await work(tx);
      if (fault === 'not committed') throw lost;
      return reserved;
    });
    if (fault !== undefined) throw lost;
    return result;
  };
  const broken = new Proxy(services.db, {
    get: (target, member) => (member === 'begin' ? begin : Reflect.get(target, member)),
  });
  const settlements = createSettlements({ db: broken, log: services.log });
  const released: string[] = [];
  const reserve = (name: string) =>
    settlements.reserve(
      async (tx) => {
        await tx`insert into reserved values (${name})`;
        return name;
      },
      async (tx, reserved) => {
        released.push(reserved);
        await tx`delete from reserved where name = ${reserved}`;
      },
    );
  await assert.rejects(reserve('committed'), lost);
  await assert.rejects(reserve('not committed'), lost);
  assert.equal(await reserve('kept'), 'kept');
  const left = async () => (await db<{ name: string }[]>`select name from reserved`).map(({ name }) => name);
  await until(async () => !(await left()).includes('committed'));
  await settlements.close();
  assert.deepEqual([await left(), released], [['kept'], ['committed']]);
});
