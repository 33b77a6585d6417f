/*
 * Workflows that the worker of each language has: test/fixtures/python/worker/scenarios.py is the same in Python. A
 * process that tests stop and kill; it prints a line for each event.
 * Arguments: the URL of the server, a secret key, the prefix of the automations' lookup keys, and the version of the code.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Quarry } from '../../clients/typescript/src/index.ts';
import { type Run, StepError, worker, workflow } from '../../clients/typescript/src/workflows.ts';

const [baseUrl = '', key = '', prefix = '', codeVersion = ''] = process.argv.slice(2);
const say = (word: string) => process.stdout.write(`${word}\n`);
const retry = { max_attempts: 3, initial_seconds: 0.05, factor: 1 };
const codeOf = (error: StepError) => [error.code, error.step];

const quarry = new Quarry({ baseUrl, key });

const scenarios: Record<string, (run: Run, input: { n?: number }) => Promise<unknown>> = {
  async steps(run, { n = 0 }) {
    const commands = new Set<string>();
    const twice = await run.step('double', () => ({ value: n * 2 }));
    const attempts = await run.step('flaky', { retry }, ({ attempt, commandId }) => {
      commands.add(commandId);
      if (attempt < 3) throw new Error('Not yet.');
      return attempt;
    });
    const broken = await run
      .step('broken', { retry: 5 }, () => {
        throw Object.assign(new Error('Never.'), { code: 'bad_input', retryable: false });
      })
      .catch(codeOf);
    return { twice, attempts, broken, commands: commands.size };
  },
  async branches(run) {
    const all = await run.all({
      async left(left) {
        await left.sleep('nap', 0.05);
        return left.step('work', () => 'left');
      },
      right: (right) => right.all({ inner: (inner) => inner.step('work', () => 'right') }),
      asked: (asked) => asked.signal('go'),
    });
    const squares = await run.map([2, 3], { key: String }, (item, one) =>
      one.child<number>('square', `${prefix}square`, { n: item }),
    );
    for (let turn = 0; turn < 2; turn++) await run.step('loop', () => turn);
    return { ...all, squares };
  },
  uploads: (run) =>
    run.step('upload', async ({ run: id }) => {
      const file = new File(['hello'], 'a.txt');
      return (await quarry.files.upload(file, { owner: { automation_run: id } })).filename;
    }),
  square: (run, { n = 0 }) => run.step('square', () => n ** 2),
  async asks(run) {
    const form = { type: 'object', required: ['account'], properties: { account: { type: 'string' } } } as const;
    const { ok, data, by } = await run.approve('book', { question: 'Which account?', form, timeout: '7d' });
    const account: string = data.account;
    const late = await run.approve('now', { question: 'Now?', timeout: 0.05 }).catch(codeOf);
    const users = ['usr_0000000000000000000000'];
    const nobody = await run.approve('nobody', { question: 'Who?', users }).catch(codeOf);
    return { ok, data: { account }, by, late, nobody };
  },
  async values(run) {
    const values = [(await run.now()).getTime(), await run.random(), await run.id()];
    await run.signal('go');
    const again = [(await run.now()).getTime(), await run.random(), await run.id()];
    return { values, again };
  },
  twice: (run) => Promise.all([run.step('a', () => 1), run.step('a', () => 2)]),
  async thrown() {
    throw Object.assign(new Error('No such invoice.'), { code: 'no_invoice' });
  },
  refused: (run) => run.approve('long', { question: 'x'.repeat(10_001) }),
  async many(run) {
    const items = Array.from({ length: 250 }, (_, n) => n);
    const commands = await run.map(items, { key: String }, (_, one) => one.step('do', ({ commandId }) => commandId));
    return [new Set(commands).size, commands.every((one) => one.startsWith('cmd_'))];
  },
  async long(run) {
    await run.step('first', () => 1);
    return run.step('hold', async ({ commandId, attempt, signal }) => {
      say(`begun ${commandId}`);
      if (codeVersion !== 'quick') await pause(600_000, undefined, { signal }).finally(() => say('aborted'));
      return attempt;
    });
  },
  changes(run) {
    if (codeVersion === 'changed') return run.sleep('one', '1d');
    const one = run.step('one', () => 1);
    return codeVersion === 'short' ? one : one.then(() => run.signal('go')).then(() => run.step('two', () => 2));
  },
};

const flows = Object.entries(scenarios).map(([name, body]) => workflow(`${prefix}${name}`, {}, body as never));
const onError = (error: unknown) => process.stderr.write(`${error instanceof StepError ? 'step' : ''} ${error}\n`);
const one = worker(quarry, flows, { codeVersion, leaseSeconds: 20, onError });
process.once('SIGTERM', () => one.stop().then(() => process.exit(0)));
void one.start();
say('started');
