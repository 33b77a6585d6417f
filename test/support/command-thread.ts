import { Readable, Writable } from 'node:stream';
import { parentPort } from 'node:worker_threads';
import { runCommand } from '../../src/cli/run.ts';

/** One command for this thread, which runs them one after another. */
export type ThreadCommand = {
  args: string[];
  env: Record<string, string | undefined>;
  input: string | Uint8Array;
  /** Whether a person types the input. */
  isTerminal: boolean;
};

parentPort?.on('message', async ({ args, env, input, isTerminal }: ThreadCommand) => {
  // A thread has a copy of the environment of its process.
  for (const name of Object.keys(process.env)) delete process.env[name];
  for (const [name, value] of Object.entries(env)) if (value !== undefined) process.env[name] = value;
  const stdout = replace('stdout');
  const stderr = replace('stderr');
  const stdin = Object.assign(Readable.from([Buffer.from(input)]), { isTTY: isTerminal });
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true });
  const code = await runCommand(args);
  parentPort?.postMessage({ code, stdout: stdout(), stderr: stderr() });
});

/** Collects what the command writes until the next command. */
function replace(name: 'stdout' | 'stderr'): () => string {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  Object.defineProperty(process, name, { value: stream, configurable: true });
  return () => Buffer.concat(chunks).toString('utf8');
}
