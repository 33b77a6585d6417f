/*
 * A worker of workflows in code, as a process that tests kill. It prints a line when it has started.
 * Arguments: the URL of the server, a secret key, and the lookup key of the automation.
 */
import { Quarry } from '../../clients/typescript/src/index.ts';
import { worker, workflow } from '../../clients/typescript/src/workflows.ts';

const [baseUrl = '', key = '', name = ''] = process.argv.slice(2);

const flow = workflow(name, {}, async (run) => {
  const first = await run.step('first', ({ commandId }) => commandId);
  const { left, right } = await run.all({
    async left(branch) {
      await branch.sleep('nap', 0.3);
      return branch.step('work', { retry: { max_attempts: 5, initial_seconds: 0.05, factor: 1 } }, ({ attempt }) => {
        if (attempt < 2) throw new Error('Not yet.');
        return 'left';
      });
    },
    right: (branch) => branch.signal('go'),
  });
  const items = await run.map([1, 2, 3], { key: String }, (item, branch) =>
    branch.step('square', () => new Promise<number>((resolve) => setTimeout(() => resolve(item ** 2), 20))),
  );
  return { first, left, right, items, id: await run.id() };
});

const one = worker(new Quarry({ baseUrl, key }), [flow], { leaseSeconds: 2, concurrency: 5 });
void one.start();
process.stdout.write('started\n');
