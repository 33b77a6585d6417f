/*
 * A worker of workflows in code, as a process that tests kill. It prints a line when it has started.
 * Arguments: the URL of the server, a secret key, and the lookup key of the automation. With a port and the secret of a
 * webhook instead of the first two, it is a function that the webhook wakes.
 */
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Quarry } from '../../clients/typescript/src/index.ts';
import { serve } from '../../clients/typescript/src/serve.ts';
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

if (/^\d+$/.test(baseUrl)) {
  const handle = serve([flow], { secret: key });
  const host = createServer(async (incoming, outgoing) => {
    const headers = Object.entries(incoming.headers).map(([header, value]): [string, string] => [
      header,
      String(value),
    ]);
    const body = await text(incoming);
    const response = await handle(new Request('http://localhost/', { method: 'POST', headers, body }));
    outgoing.writeHead(response.status).end(await response.text());
  });
  await new Promise<void>((resolve) => host.listen(Number(baseUrl), '127.0.0.1', resolve));
} else void worker(new Quarry({ baseUrl, key }), [flow], { leaseSeconds: 2, concurrency: 25 }).start();
process.stdout.write('started\n');
