import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { AutomationsClient, entryTypes, graphOf, type Run } from '../../support/automations.ts';
import { codeOf, completed, ProgramWorker, programOf, started } from '../../support/programs.ts';
import type { TestUser } from '../../support/provisioner.ts';
import { type ErrorBody, sendRequest, startTestServer } from '../../support/server.ts';
import { until } from '../../support/until.ts';

const server = await startTestServer();
after(() => server.close());
const app = await server.provision.app();
const client = new AutomationsClient(server, app);
const org = await server.provision.org(app);
const people = {
  boss: await server.provision.user(app, { org, role: 'admin' }),
  member: await server.provision.user(app, { org, role: 'member' }),
  teammate: await server.provision.user(app),
  stranger: await server.provision.user(app),
};
const team = await server.provision.team(app, { members: [[people.teammate, 'member']] });

type Approval = {
  id: string;
  status: string;
  question: string;
  form: { properties: Record<string, unknown> };
  run?: string;
  answer?: unknown;
  answered_by?: string;
  expires_at?: string;
};
type WaitingRun = Run & { waiting_for?: Record<string, unknown> };

const as = <T = Approval>(user: TestUser, method: string, path: string, body?: unknown) =>
  server.api<T & Partial<ErrorBody>>(method, `/api/v1${path}`, {
    key: app.publishableKey,
    token: user.token,
    ...(body === undefined ? {} : { body }),
  });

/** Starts a run that asks, and returns it with its approval once it waits. */
async function ask(
  node: Record<string, unknown>,
  more: { invoker?: TestUser; after?: Record<string, unknown>[] } = {},
) {
  const { id } = await client.createAutomation({
    org: org.id,
    workflow: graphOf(
      { id: 'ask', kind: 'approve', question: 'Book {{$.amount}}?', on_success: 'done', ...node },
      ...(more.after ?? []),
      { id: 'done', kind: 'complete', result: '{{$nodes.ask}}' },
    ),
  });
  const body = { payload: { amount: 7 } };
  const run = more.invoker
    ? (await as<Run>(more.invoker, 'POST', `/automations/${id}/invoke`, body)).body
    : await client.invoke(id, body);
  // Its deadline may have passed already.
  await client.waitUntil(run.id, (_run, { data }) => data.some(({ type }) => type === 'signal_waiting'));
  const listed = (status: 'waiting' | 'expired') =>
    client.call<{ data: Approval[] }>('GET', `/approvals?run=${run.id}&status=${status}`);
  const approval = (await listed('waiting')).body.data[0] ?? (await listed('expired')).body.data[0];
  assert.ok(approval);
  return { run: run.id, approval };
}

const answerAs = (user: TestUser, { id }: Approval, data: unknown = { ok: true }) =>
  as(user, 'POST', `/approvals/${id}/answer`, { data });

test('those who are asked see the question, not the run, and one of them answers', async () => {
  const { run, approval } = await ask({ users: [people.boss.id], teams: [team.id] });
  assert.match(approval.id, /^apr_/);
  assert.equal(approval.question, 'Book 7?');
  assert.equal(approval.run, run);
  for (const user of [people.boss, people.teammate]) {
    const { body } = await as<{ data: Approval[] }>(user, 'GET', '/approvals');
    assert.ok(body.data.some(({ id }) => id === approval.id));
    const { body: one } = await as(user, 'GET', `/approvals/${approval.id}`);
    assert.deepEqual(Object.keys(one).sort(), ['created_at', 'form', 'id', 'question', 'status']);
  }
  for (const user of [people.member, people.stranger]) {
    const { body } = await as<{ data: Approval[] }>(user, 'GET', '/approvals');
    assert.ok(!body.data.some(({ id }) => id === approval.id));
    assert.equal((await as(user, 'GET', `/approvals/${approval.id}`)).status, 404);
    assert.equal((await answerAs(user, approval)).status, 404);
  }
  const answered = await answerAs(people.teammate, approval, { ok: true, comment: 'fine' });
  assert.equal(answered.status, 200, answered.text);
  assert.equal(answered.body.status, 'answered');
  const ended = await client.waitForEnd(run);
  const { at, ...result } = ended.result as { at: string };
  assert.ok(Date.parse(at) > 0);
  const data = { ok: true, comment: 'fine' };
  assert.deepEqual(result, { approval: approval.id, ok: true, data, by: people.teammate.id });
  const late = await answerAs(people.boss, approval);
  assert.equal(late.status, 409);
  assert.deepEqual(late.body.error?.details, { status: 'answered' });
  assert.deepEqual(entryTypes(await client.journal(run)).slice(1, 5), [
    'node_started ask',
    'signal_waiting ask',
    'signal_received ask',
    'node_completed ask',
  ]);
  const proof = await client.call('GET', '/ledger/verification');
  assert.doesNotMatch(proof.text, /"(broken|altered|missing)"/);
});

test('roles count in their organisation, and membership at the moment of the answer', async () => {
  const { run, approval } = await ask({ roles: ['admin'], teams: [team.id] });
  assert.equal((await answerAs(people.member, approval)).status, 404);
  const left = await client.call('DELETE', `/teams/${team.id}/members`, { user: people.teammate.id });
  assert.ok(left.status < 300, left.text);
  assert.equal((await answerAs(people.teammate, approval)).status, 404);
  await client.call('POST', `/teams/${team.id}/members`, { user: people.teammate.id });
  assert.equal((await answerAs(people.boss, approval, { ok: false })).status, 200);
  assert.equal(((await client.waitForEnd(run)).result as { ok: boolean }).ok, false);
});

test('the invoker may be excluded', async () => {
  const { run, approval } = await ask(
    { users: [people.boss.id, people.member.id], exclude_invoker: true },
    { invoker: people.member },
  );
  assert.equal((await answerAs(people.member, approval)).status, 404);
  assert.equal((await answerAs(people.boss, approval)).status, 200);
  await client.waitForEnd(run);
});

test('who invoked a run that led to another is excluded there too, whomever the runs act as', async () => {
  const create = async (node: object, more: object = {}) => {
    const made = await client.createAutomation({ workflow: graphOf({ id: 'node', ...node }), ...more });
    return made.id;
  };
  const users = [people.boss.id, people.member.id];
  const child = await create({ kind: 'approve', question: 'May they?', users, exclude_invoker: true });
  await create(
    { kind: 'approve', question: 'May they?', users, exclude_invoker: true },
    { type: 'trigger', trigger: 'asked' },
  );
  for (const runAs of [{}, { run_as_user: people.boss.id }])
    for (const node of [
      { kind: 'run_automation', automation: child },
      { kind: 'emit_event', name: 'asked' },
    ]) {
      const parent = await create(node, runAs);
      await as(people.member, 'POST', `/automations/${parent}/invoke`, {});
      let asked: Approval | undefined;
      await until(async () => {
        asked = (await client.call<{ data: Approval[] }>('GET', '/approvals')).body.data[0];
        return asked !== undefined;
      });
      assert.ok(asked);
      assert.equal((await answerAs(people.member, asked)).status, 404, JSON.stringify([runAs, node]));
      assert.equal((await client.call('POST', `/approvals/${asked.id}/answer`, { data: { ok: true } })).status, 200);
    }
});

test('the answer must match the form', async () => {
  const form = { type: 'object', required: ['account'], properties: { account: { type: 'string', enum: ['a', 'b'] } } };
  const { run, approval } = await ask({ users: [people.boss.id], form });
  assert.deepEqual(approval.form, form);
  const wrong = await answerAs(people.boss, approval, { account: 'c' });
  assert.equal(wrong.status, 422);
  assert.equal(wrong.body.error?.fields[0]?.field, 'data.account');
  assert.equal((await answerAs(people.boss, approval, {})).status, 422);
  assert.equal((await as(people.boss, 'POST', `/approvals/${approval.id}/answer`, {})).status, 422);
  assert.equal((await answerAs(people.boss, approval, { account: 'b' })).status, 200);
  assert.deepEqual((await client.waitForEnd(run)).result && (await client.run(run)).status, 'completed');
});

test('signals and personal tokens do not answer; a secret key does, and the journal says so', async () => {
  const { run, approval } = await ask({ users: [people.boss.id] });
  const signal = await client.call('POST', `/automation_runs/${run}/signal`, { name: 'ask', payload: { ok: true } });
  assert.equal(signal.status, 200, signal.text);
  const minted = await as<{ token: string }>(people.boss, 'POST', `/users/${people.boss.id}/tokens`, {
    name: 'script',
  });
  assert.match(minted.body.token, /^sat_/);
  const answered = await server.api('POST', `/api/v1/approvals/${approval.id}/answer`, {
    key: app.publishableKey,
    token: minted.body.token,
    body: { data: { ok: true } },
  });
  assert.equal(answered.status, 403, answered.text);
  assert.equal((await client.journalPage(run)).journal?.status, 'waiting');
  const key = await client.call('POST', `/approvals/${approval.id}/answer`, { data: { ok: true } });
  assert.equal(key.status, 200, key.text);
  assert.equal(((await client.waitForEnd(run)).result as { by: string }).by, 'secret key');
});

test('after its deadline an approval has expired, and the run continues at on_timeout', async () => {
  const { run, approval } = await ask(
    { users: [people.boss.id], timeout_seconds: 1, on_timeout: 'late' },
    { after: [{ id: 'late', kind: 'complete', result: 'late' }] },
  );
  assert.ok(approval.expires_at);
  assert.equal((await client.waitForEnd(run)).result, 'late');
  assert.equal((await as(people.boss, 'GET', `/approvals/${approval.id}`)).body.status, 'expired');
  assert.equal((await answerAs(people.boss, approval)).status, 409);
});

test('approvals of a cancelled run, and of branches that a failure ends, are cancelled', async () => {
  const { run, approval } = await ask({ users: [people.boss.id] });
  await client.call('POST', `/automation_runs/${run}/cancel`);
  assert.equal((await as(people.boss, 'GET', `/approvals/${approval.id}`)).body.status, 'cancelled');
  assert.equal((await answerAs(people.boss, approval)).status, 409);
  const { id } = await client.createAutomation({
    workflow: graphOf(
      {
        id: 'both',
        kind: 'parallel',
        on_error: 'next',
        nodes: [
          { id: 'ask', kind: 'approve', question: 'Sure?', users: [people.boss.id] },
          { id: 'late', kind: 'wait_for_signal', name: 'never', timeout_seconds: 5 },
        ],
      },
      { id: 'next', kind: 'wait_for_signal', name: 'go' },
    ),
  });
  const branched = await client.invoke(id);
  await client.waitUntilWaiting(branched.id);
  const waiting = async () => (await client.run(branched.id)) as WaitingRun;
  assert.equal((await waiting()).waiting_for?.kind, 'approval');
  assert.equal((await waiting()).waiting_for?.others, 1);
  await client.waitUntil(branched.id, (now) => (now as WaitingRun).waiting_for?.name === 'go');
  const listed = await client.call<{ data: Approval[] }>('GET', `/approvals?run=${branched.id}&status=cancelled`);
  assert.equal(listed.body.data.length, 1);
  assert.equal((await client.run(branched.id)).status, 'running');
});

test('a run shows what it waits for, which is not a change of its status', async () => {
  const { run, approval } = await ask({ users: [people.boss.id] });
  const waiting = (await client.run(run)) as WaitingRun;
  assert.deepEqual(waiting.waiting_for, { kind: 'approval', node_id: 'ask', approval: approval.id });
  const [{ version }] = await server.db<[{ version: number }]>`
    select version from automation_runs where waiting_for->>'approval' = ${approval.id}`;
  assert.equal(Number(version), 2);
  await answerAs(people.boss, approval);
  assert.equal('waiting_for' in (await client.waitForEnd(run)), false);
});

test('a link shows the form and answers once, and the journal names its holder', async () => {
  const { run, approval } = await ask({ users: [people.boss.id] });
  const created = await client.call<{ url: string }>('POST', `/approvals/${approval.id}/links`, {
    to: 'ada@example.com',
  });
  assert.equal(created.status, 201, created.text);
  const path = new URL(created.body.url).pathname;
  const open = (method: string, at = path, body?: unknown) =>
    sendRequest<Approval & { sent_to: string }>(server.baseUrl, method, at, body === undefined ? {} : { body });
  const shown = await open('GET');
  assert.equal(shown.status, 200, shown.text);
  assert.deepEqual(
    [shown.body.question, shown.body.status, shown.body.sent_to],
    ['Book 7?', 'waiting', 'ada@example.com'],
  );
  const page = await sendRequest(server.baseUrl, 'GET', path, { headers: { accept: 'text/html' } });
  assert.equal(page.status, 303);
  assert.match(page.headers.get('location') ?? '', /\/console\/answer\//);
  // No token leads a browser to another page, or breaks the response.
  for (const [token, sent] of [
    ['%0d%0aset-cookie:a=b', '%0D%0Aset-cookie%3Aa%3Db'],
    ['%E4%B8%80', '%E4%B8%80'],
    ['..%2F..%2Fcontent', '..%2F..%2Fcontent'],
  ] as const) {
    const at = `/api/v1/approval_links/${token}`;
    const { status, headers } = await sendRequest(server.baseUrl, 'GET', at, { headers: { accept: 'text/html' } });
    assert.deepEqual([status, headers.get('location')], [303, `${server.baseUrl}/console/answer/${sent}`]);
  }
  const token = path.split('/').at(-1) ?? '';
  const altered = `${path.slice(0, -3)}${token.endsWith('AAA') ? 'BBB' : 'AAA'}`;
  assert.equal((await open('GET', altered)).status, 404);
  assert.equal((await open('POST', path, { data: { ok: 'yes' } })).status, 422);
  const answered = await open('POST', path, { data: { ok: true } });
  assert.equal(answered.status, 200, answered.text);
  assert.equal((await open('POST', path, { data: { ok: true } })).status, 409);
  assert.equal((await open('GET')).body.status, 'answered');
  await client.waitForEnd(run);
  assert.match(JSON.stringify(await client.journal(run)), /holder of the link sent to ada@example\.com/);
  const asUser = await as(people.boss, 'POST', `/approvals/${approval.id}/links`, { to: 'x' });
  assert.equal(asUser.status, 403);
});

test('two answers at the same moment are one', async () => {
  const { run, approval } = await ask({ users: [people.boss.id, people.member.id] });
  const answers = await Promise.all([people.boss, people.member].map((user) => answerAs(user, approval)));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409]);
  await client.waitForEnd(run);
});

test('an answered approval is kept by a rewind, which cannot replace an output before it', async () => {
  const { id } = await client.createAutomation({
    workflow: graphOf(
      { id: 'read', kind: 'transform', value: 1, on_success: 'ask' },
      { id: 'ask', kind: 'approve', question: 'Sure?', users: [people.boss.id], on_success: 'bad' },
      { id: 'bad', kind: 'fail', message: 'no' },
    ),
  });
  const run = await client.invoke(id);
  await client.waitUntilWaiting(run.id);
  const { body } = await client.call<{ data: Approval[] }>('GET', `/approvals?run=${run.id}`);
  assert.equal((await answerAs(people.boss, body.data[0] as Approval)).status, 200);
  await client.waitForEnd(run.id);
  const retry = (more: object) =>
    client.call<Run & Partial<ErrorBody>>('POST', `/automation_runs/${run.id}/retry`, { from: 'failure', ...more });
  const refused = await retry({ outputs: { read: 2 } });
  assert.equal(refused.status, 409);
  assert.equal(refused.body.error?.code, 'rewind_refused');
  const again = await retry({});
  assert.equal(again.status, 201);
  const ended = await client.waitForEnd(again.body.id);
  assert.equal(ended.error?.node_id, 'bad');
  const asked = await client.call<{ data: Approval[] }>('GET', `/approvals?run=${again.body.id}`);
  assert.deepEqual(asked.body.data, []);
  const other = await client.call<Run>('POST', `/automation_runs/${run.id}/retry`, {
    from: { node: 'ask' },
    outputs: { read: 2 },
  });
  assert.equal(other.status, 201, other.text);
  await client.waitUntilWaiting(other.body.id);
});

test('asking and answering emit events', async () => {
  const listener = await client.createAutomation({
    type: 'trigger',
    trigger: 'approval.answered',
    workflow: graphOf({ id: 'end', kind: 'complete', result: '{{$.payload}}' }),
  });
  const { run, approval } = await ask({ users: [people.boss.id] });
  await answerAs(people.boss, approval);
  await client.waitForEnd(run);
  for (;;) {
    const { body } = await client.call<{ data: Run[] }>('GET', `/automations/${listener.id}/runs?status=completed`);
    const found = body.data.find(({ result }) => (result as { approval: string }).approval === approval.id);
    if (found) {
      assert.equal((found.result as { answered_by: string }).answered_by, people.boss.id);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
});

test('a node that asks nobody known, or with a form that is not a schema, fails', async () => {
  const errorOf = async (node: object) =>
    (await client.runGraph(graphOf({ id: 'ask', kind: 'approve', question: 'Sure?', ...node }))).error;
  assert.match((await errorOf({ users: ['usr_0000000000000000000000'] }))?.message ?? '', /there is no user/);
  assert.match((await errorOf({ roles: ['admin'] }))?.message ?? '', /need org/);
  assert.match((await errorOf({ form: { type: 'nonsense' } }))?.message ?? '', /JSON Schema/);
});

test('a step of a program asks like a node: its audience answers, signals do not, and the answer ends the step', async () => {
  const { id, work, ask, approvals } = await askInProgram();
  const asked = await ask('book', {
    ...{ question: 'Book it?', users: [people.boss.id], teams: [team.id], timeout_seconds: 3_600 },
  });
  assert.deepEqual(entryTypes(asked.entries as never), ['signal_waiting book']);
  const approval = (await approvals())[0] as Approval;
  assert.equal(approval.question, 'Book it?');
  const run = (await client.run(work.run)) as WaitingRun;
  const { until, ...waiting } = run.waiting_for ?? {};
  assert.deepEqual(waiting, { kind: 'approval', node_id: 'book', approval: approval.id });
  assert.equal(until, approval.expires_at);
  assert.equal((await as(people.stranger, 'GET', `/approvals/${approval.id}`)).status, 404);
  assert.equal((await answerAs(people.stranger, approval)).status, 404);
  assert.equal((await answerAs(people.boss, approval, { ok: 'yes' })).status, 422);
  const signal = { name: 'book', payload: { ok: true } };
  assert.equal((await client.call('POST', `/automation_runs/${work.run}/signal`, signal)).status, 200);
  assert.equal((await as(people.boss, 'GET', `/approvals/${approval.id}`)).body.status, 'waiting');
  assert.equal((await answerAs(people.boss, approval)).status, 200);
  assert.equal((await answerAs(people.boss, approval)).status, 409);
  const next = await worker.take(id);
  // The signal has made the run ready, so a claim may come before the answer ends the step.
  const journal = [...next.claimed.journal];
  while (journal.at(-1)?.type !== 'node_completed') {
    const { entries } = await next.write([], { wait_seconds: 30 });
    assert.ok(entries.length > 0);
    journal.push(...entries);
  }
  const { payload } = journal.at(-1)?.record ?? {};
  const { at, ...answer } = payload as { at: string };
  assert.ok(Date.parse(at) > 0);
  assert.deepEqual(answer, { approval: approval.id, ok: true, data: { ok: true }, by: people.boss.id });
  const ended = entryTypes(journal as never).slice(-2);
  assert.deepEqual(ended, ['signal_received book', 'node_completed book']);
  await next.write([{ type: 'run_completed' }]);
});

test('an approval of a program expires on the server, is cancelled with its run, and is asked once by a repeated batch', async () => {
  const { id, work, ask, approvals } = await askInProgram();
  await ask('late', { question: 'Now?', users: [people.boss.id], timeout_seconds: 0.05 });
  const next = await worker.take(id);
  assert.deepEqual(entryTypes(next.claimed.journal as never).slice(-2), ['signal_timed_out late', 'node_failed late']);
  assert.equal(codeOf(next.claimed.journal.at(-1)), 'timeout');
  assert.equal((await approvals('expired')).length, 1);
  const { sequence } = next;
  const batch = [started('again', { kind: 'approve', question: 'Sure?', users: [people.boss.id] })];
  await next.write(batch);
  next.sequence = sequence;
  assert.equal((await next.send(batch)).status, 200);
  assert.equal((await approvals()).length, 1);
  assert.equal((await next.send([completed('again', { ok: true })])).status, 409, 'a worker does not answer');
  await client.call('POST', `/automation_runs/${work.run}/cancel`);
  assert.equal((await approvals('cancelled')).length, 1);
});

test('a step that asks nobody known fails, and a question that is missing or too long is 422', async () => {
  const { work } = await askInProgram();
  const ask = (node: string, more: object) => work.send([started(node, { kind: 'approve', ...more })]);
  const bad: [object, string][] = [
    [{}, 'entries.0.question'],
    [{ question: 'x'.repeat(10_001) }, 'entries.0.question'],
    [{ question: 'Sure?', payload: 1 }, 'entries.0.payload'],
  ];
  for (const [members, field] of bad) {
    const refused = await ask('a', members);
    assert.equal(refused.status, 422);
    assert.equal(refused.body.error.fields?.[0]?.field, field);
  }
  const unknown = { question: 'Sure?', users: ['usr_0000000000000000000000'] };
  const appended = await work.write([started('a', { kind: 'approve', ...unknown })]);
  assert.deepEqual(entryTypes(appended.entries as never), ['node_failed a']);
  assert.equal(codeOf(appended.entries[0]), 'invalid_members');
});

const worker = new ProgramWorker(client);

/** A claimed run of a program; `ask` starts a step that asks and releases the run. */
async function askInProgram() {
  const { id } = await client.createAutomation({ workflow: programOf('asks') });
  await client.invoke(id);
  const work = await worker.take(id);
  return {
    id,
    work,
    ask: (node: string, more: object) => work.write([started(node, { kind: 'approve', ...more })], { release: {} }),
    async approvals(status = 'waiting') {
      const path = `/approvals?run=${work.run}&status=${status}`;
      return (await client.call<{ data: Approval[] }>('GET', path)).body.data;
    },
  };
}
