import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { AutomationsClient, entryTypes, type Run } from '../../support/automations.ts';
import { basicEnvironment } from '../../support/command.ts';
import { findFreePort } from '../../support/free-port.ts';
import { programOf } from '../../support/programs.ts';
import { pythonModules, pythonPath } from '../../support/python.ts';
import { startTestServer } from '../../support/server.ts';
import { projectRoot } from '../../support/source.ts';
import { until } from '../../support/until.ts';
import { WebhooksClient } from '../../support/webhooks.ts';

/* The workers of both languages do the same in the same scenarios, and write the same journals. */

const names = 'steps branches uploads square asks values twice thrown refused many long changes'.split(' ');
const languages = {
  typescript: { command: [process.execPath, 'test/support/workflow-scenarios.ts'], env: {} },
  python: {
    command: [pythonPath(), '-W', 'default', 'test/fixtures/python/worker/scenarios.py'],
    env: { PYTHONPATH: pythonModules.join(':'), PYTHONDONTWRITEBYTECODE: '1' },
  },
} as const;
type Language = keyof typeof languages;

const server = await startTestServer({ env: { QUARRY_FETCH_ALLOW: '127.0.0.1' } });
const app = await server.provision.app();
const client = new AutomationsClient(server, app);
const workers = new Set<ChildProcess>();
after(async () => {
  for (const one of workers) one.kill('SIGKILL');
  await server.close();
});

/** A worker process, and the lines that it prints. */
class Worker {
  readonly process: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  errors = '';

  constructor([program = '', ...args]: readonly string[], env: Record<string, string>) {
    this.process = spawn(program, args, {
      cwd: projectRoot,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...basicEnvironment(), ...env },
    });
    workers.add(this.process);
    assert.ok(this.process.stdout && this.process.stderr);
    this.#lines = createInterface(this.process.stdout)[Symbol.asyncIterator]();
    this.process.stderr.on('data', (text) => {
      this.errors += String(text);
    });
  }

  async line(): Promise<string> {
    const { done, value } = await this.#lines.next();
    assert.ok(!done, this.errors);
    return value;
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    const ended = once(this.process, 'exit');
    this.process.kill(signal);
    await ended;
    workers.delete(this.process);
  }
}

async function start(language: Language, version = '1'): Promise<Worker> {
  const { command, env } = languages[language];
  const one = new Worker([...command, server.baseUrl, app.secretKey, `${language}-`, version], env);
  assert.equal(await one.line(), 'started');
  return one;
}

type Scenario = { payload?: object; meanwhile?: (run: string) => Promise<unknown>; check: (run: Run) => unknown };

const signal = (run: string) => client.call('POST', `/automation_runs/${run}/signal`, { name: 'go', payload: 7 });
const waitsFor = (run: string, kind: string) =>
  client.waitUntil(run, (now) => (now as Waiting).waiting_for?.kind === kind) as Promise<Waiting>;
type Waiting = Run & { waiting_for?: { kind: string; approval?: string; workflow_changed?: unknown } };

const scenarios: Record<string, Scenario> = {
  steps: {
    payload: { n: 20 },
    check: ({ result }) =>
      assert.deepEqual(result, {
        ...{ twice: { value: 40 }, attempts: 3, broken: ['bad_input', 'broken'], commands: 1 },
      }),
  },
  branches: {
    meanwhile: signal,
    check: ({ result }) =>
      assert.deepEqual(result, { left: 'left', right: { inner: 'right' }, asked: 7, squares: [4, 9] }),
  },
  uploads: {
    async check({ id, result }) {
      assert.equal(result, 'a.txt');
      const { body } = await client.call<{ data: unknown[] }>('GET', `/files?automation_run=${id}`);
      assert.equal(body.data.length, 1);
    },
  },
  asks: {
    async meanwhile(run) {
      const { waiting_for: waiting } = await waitsFor(run, 'approval');
      const answered = await client.call('POST', `/approvals/${waiting?.approval}/answer`, { data: { account: 'a' } });
      assert.equal(answered.status, 200);
    },
    check: ({ result }) =>
      assert.deepEqual(result, {
        ...{ ok: true, data: { account: 'a' }, by: 'secret key' },
        ...{ late: ['timeout', 'now'], nobody: ['invalid_members', 'nobody'] },
      }),
  },
  values: {
    meanwhile: async (run) => signal((await waitsFor(run, 'signal')).id),
    check({ result }) {
      const { values, again } = result as { values: unknown[]; again: unknown[] };
      assert.equal(new Set([...values, ...again]).size, 6, 'the second of a name has a value of its own');
    },
  },
  twice: { check: ({ error }) => assert.equal(error?.code, 'duplicate_step') },
  thrown: { check: ({ error }) => assert.deepEqual([error?.code, error?.message], ['no_invoice', 'No such invoice.']) },
  refused: { check: ({ error }) => assert.match(`${error?.code} ${error?.message}`, /^invalid_parameters .*question/) },
  many: { check: ({ result }) => assert.deepEqual(result, [250, true]) },
};

/** What happened at each step of a run, whatever happened in between. */
async function historyOf(run: string): Promise<string[]> {
  const { journal } = await client.journalPage(run);
  assert.ok(journal);
  const entries = entryTypes(await client.journal(run)).map((entry) => entry.split(' '));
  return entries.map(([type, node]) => `${node ?? ''} ${type}`).toSorted();
}

const journals = new Map<string, string[]>();

for (const language of ['typescript', 'python'] as const) {
  test(`each scenario ends as it should, with the same journal (${language})`, async () => {
    for (const name of names)
      await client.createAutomation({ lookup_key: `${language}-${name}`, workflow: programOf(name) });
    const worker = await start(language);
    await Promise.all(
      Object.entries(scenarios).map(async ([name, { payload = {}, meanwhile, check }]) => {
        const { id } = await client.invoke(`${language}-${name}`, { payload });
        await meanwhile?.(id);
        await check(await client.waitForEnd(id));
        const history = await historyOf(id);
        assert.deepEqual(history, journals.get(name) ?? history, name);
        journals.set(name, history);
      }),
    );
    await worker.end('SIGTERM');
    assert.doesNotMatch(worker.errors, /Warning|never retrieved|Traceback/);
  });
}

/* The tests of the TypeScript client have the same in one process. */

test('the step of a killed worker is repeated with its command, a stopped worker hands its run back, and cancelling aborts', async () => {
  const { id } = await client.invoke('python-long');
  const killed = await start('python', 'killed');
  const begun = await killed.line();
  assert.match(begun, /^begun cmd_/);
  await killed.end('SIGKILL');
  const stopped = await start('python');
  assert.equal(await stopped.line(), begun);
  const ending = stopped.end('SIGTERM');
  assert.equal(await stopped.line(), 'aborted');
  await ending;
  const last = await start('python', 'quick');
  assert.equal(await last.line(), begun);
  assert.equal((await client.waitForEnd(id)).result, 1);
  assert.equal((await client.journal(id)).filter(({ type }) => type === 'node_started').length, 2);
  await last.end('SIGTERM');
  const cancelling = await start('python');
  const { id: cancelled } = await client.invoke('python-long');
  assert.match(await cancelling.line(), /^begun/);
  await client.call('POST', `/automation_runs/${cancelled}/cancel`);
  assert.equal(await cancelling.line(), 'aborted');
  await cancelling.end('SIGTERM');
  assert.equal((await client.run(cancelled)).status, 'cancelled');
});

test('a run that the code does not fit waits for code that does', async () => {
  const { id } = await client.invoke('python-changes');
  const first = await start('python', 'a');
  await waitsFor(id, 'signal');
  await first.end('SIGTERM');
  await signal(id);
  const found = {
    changed: { expected: { step: 'one', kind: 'step' }, found: { step: 'one', kind: 'sleep' } },
    short: { expected: { step: 'go', kind: 'signal' }, found: { end: 'run_completed' } },
  };
  for (const [version, workflowChanged] of Object.entries(found)) {
    const changed = await start('python', version);
    const expected = JSON.stringify(workflowChanged);
    await client.waitUntil(id, (run) => JSON.stringify((run as Waiting).waiting_for?.workflow_changed) === expected);
    await changed.end('SIGTERM');
  }
  const fitting = await start('python', 'd');
  assert.equal((await client.waitForEnd(id)).result, 2);
  await fitting.end('SIGTERM');
});

test('a function in Python continues its runs, takes only signed messages, and may respond before its work is done', async () => {
  const name = 'python-function';
  await client.createAutomation({ lookup_key: name, workflow: programOf(name) });
  const webhooks = new WebhooksClient(server, app.secretKey);
  const url = `http://127.0.0.1:${await findFreePort()}/`;
  const made = await webhooks.api<{ id: string; secret: string }>('POST', '/webhooks', { url, automations: [name] });
  assert.equal(made.status, 201, made.text);
  const { command, env } = languages.python;
  const program = command.map((part) => part.replace('scenarios.py', 'function.py'));
  const host = new Worker([...program, new URL(url).port, made.body.secret, name], env);
  assert.equal(await host.line(), 'started');
  const status = async (method: string, body?: string) =>
    (await fetch(url, { method, ...(body === undefined ? {} : { body }) })).status;
  assert.deepEqual([await status('GET'), await status('POST', '{}')], [405, 401]);
  assert.equal(await status('POST', 'a'.repeat(1024 * 1024 + 1)), 413);

  const { id: first } = await client.invoke(name);
  await waitsFor(first, 'signal');
  await signal(first);
  assert.deepEqual((await client.waitForEnd(first)).result, ['cmd_', 8]);
  assert.match(await host.line(), /^begun cmd_/);
  const begun = (await client.journal(first)).filter(({ type }) => type === 'node_started');
  assert.deepEqual(
    begun.map(({ node_id: node }) => node),
    ['first', 'go', 'second'],
  );

  const { id: held } = await client.invoke(name, { payload: { holds: true } });
  assert.match(await host.line(), /^begun cmd_/);
  await client.call('POST', `/automation_runs/${held}/cancel`);
  assert.equal((await client.waitForEnd(held)).status, 'cancelled');

  await webhooks.api('PATCH', `/webhooks/${made.body.id}`, { url: `${url}later` });
  const { id: late } = await client.invoke(name);
  await signal(late);
  const { result, error } = await client.waitForEnd(late);
  assert.deepEqual([result, error], [['cmd_', 8], undefined], host.errors);
  const isAccepted = async () =>
    (await webhooks.deliveries(made.body.id)).some(({ log }) => log.at(-1)?.status === 202);
  await until(isAccepted);
  await webhooks.api('DELETE', `/webhooks/${made.body.id}`);
  await host.end('SIGTERM');
  assert.doesNotMatch(host.errors, /Warning|never retrieved|Traceback/);
});
