import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { callQuarry } from './command.ts';

/*
 * A process that runs `quarry` commands of a shell, one after another, and loads their code once. A request names the
 * working directory, the file for the output, the arguments and the environment, each followed by a zero byte; the rest
 * is the input. The response is the exit code.
 */

let last: Promise<unknown> = Promise.resolve();

const server = createServer(async (request, response) => {
  const run = last.then(async () => runCommand(await buffer(request)));
  last = run.catch(() => {});
  await run.then(
    (code) => response.end(String(code)),
    (error) => response.writeHead(500).end(String(error)),
  );
}).listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));

// Its parent has ended.
process.stdin.resume().once('end', () => process.exit());

async function runCommand(body: Buffer): Promise<number> {
  let at = 0;
  const next = (): string => {
    const end = body.indexOf(0, at);
    const text = body.toString('utf8', at, end);
    at = end + 1;
    return text;
  };
  const [directory, output, count] = [next(), next(), Number(next())];
  const args = Array.from({ length: count }, next);
  const env: Record<string, string> = {};
  for (let line = next(); line !== ''; line = next()) {
    const [, name = '', value = ''] = /^([^=]*)=(.*)$/s.exec(line) ?? [];
    env[name] = value;
  }
  env.QUARRY_PROFILE ??= join(env.HOME ?? directory, '.config', 'quarry', 'profile.json');
  process.chdir(directory);
  const { code, stdout, stderr } = await callQuarry(args, { env, input: body.subarray(at) });
  writeFileSync(output, stdout);
  writeFileSync(`${output}.errors`, stderr);
  return code ?? 1;
}
