import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { requireProgram } from '../../scripts/setup.ts';
import { projectRoot } from './source.ts';

let interpreter: string | undefined;

/** The Python that has what the client needs. */
export function pythonPath(): string {
  interpreter ??= requireProgram('python');
  return interpreter;
}

/** Where Python finds the client and the stand-ins of frameworks. */
export const pythonModules = ['clients/python/src', 'test/fixtures/python'].map((path) => join(projectRoot, path));

/** Runs Python with the client of this project. `PYTHONPATH` of `env` comes before it. */
export async function runPython(
  args: string[],
  env: Record<string, string>,
): Promise<{ code: number | null; output: string; errors: string }> {
  const child = spawn(pythonPath(), args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...{ PATH: process.env.PATH, HOME: process.env.HOME, PYTHONDONTWRITEBYTECODE: '1', PYTHONUTF8: '1', ...env },
      PYTHONPATH: [env.PYTHONPATH, ...pythonModules].filter((path) => path !== undefined).join(':'),
    },
  });
  const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: code as number | null, output, errors };
}

type Seen = { method: string; url: string; headers: IncomingHttpHeaders };
/** What becomes of a request: it is passed on, or it ends here. */
type Behaviour = (seen: Seen, at: number, response: ServerResponse, pass: () => Promise<Response>) => unknown;

const failed = (response: ServerResponse, status: number, code: string, headers: Record<string, string> = {}) =>
  response
    .writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify({ error: { type: 'x', code, message: 'Later.', fields: [], details: {} } }));
const breakOff = (response: ServerResponse) => response.destroy();

/** By the second part of the path. */
const behaviours: Record<string, Behaviour> = {
  async lost(_, at, response, pass) {
    const answer = await pass();
    if (at === 0) breakOff(response);
    else await copy(answer, response);
  },
  async busy(_, at, response, pass) {
    if (at < 2) failed(response, 429, 'rate_limited', { 'retry-after': '0' });
    else await copy(await pass(), response);
  },
  gone: (_, at, response) => (at === 0 ? breakOff(response) : failed(response, 404, 'not_found')),
  patch: (_seen, _at, response) => breakOff(response),
  conditional: (_seen, _at, response) => breakOff(response),
  credential: (_seen, _at, response) => breakOff(response),
  tomorrow: (_seen, _at, response) => failed(response, 429, 'token_budget_exceeded', { 'retry-after': '86400' }),
  html: (_seen, _at, response) => response.writeHead(404).end('<h1>Not here</h1>'),
  text: (_seen, _at, response) => response.writeHead(200).end('<h1>Welcome</h1>'),
  unclear: (_seen, _at, response) => response.writeHead(502).end('<h1>Bad gateway</h1>'),
  silent: () => undefined,
  async stream(_, at, response, pass) {
    await copy(await pass(), response, at === 0 ? /event: put[\s\S]*\n\n/ : undefined);
  },
  async refresh(_seen, _at, response, pass) {
    await copy(await pass(), response);
  },
  /** Healthy from the second time on; then the response to a refresh token is lost. */
  async unrefreshed({ url }, at, response, pass) {
    if (url === '/healthz' && at === 1) return breakOff(response);
    const answer = await pass();
    return url.endsWith('/auth/refresh') ? breakOff(response) : copy(answer, response);
  },
};

/** Copies a response. After the text `until`, the connection breaks. */
async function copy(from: Response, to: ServerResponse, until?: RegExp): Promise<void> {
  const headers = [...from.headers].filter(
    ([name]) => !/^(content-encoding|content-length|transfer-encoding)$/.test(name),
  );
  to.writeHead(from.status, Object.fromEntries(headers));
  if (from.body === null) return void to.end();
  const reader = from.body.getReader();
  to.on('close', () => void reader.cancel().catch(() => undefined));
  let seen = '';
  for (;;) {
    const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
    if (done || to.destroyed) break;
    to.write(value);
    seen += until === undefined ? '' : Buffer.from(value ?? []).toString();
    if (until?.test(seen)) {
      // What was written has to arrive first.
      await new Promise((resolve) => to.write('', resolve));
      to.destroy();
    }
  }
  to.end();
}

type ScriptedServer = { url: string; requests: Map<string, Seen[]>; close(): Promise<void> };

/** A server in front of another one, which fails as the second part of the path says: `/anything/lost/api/v1/…`. */
export async function startScriptedServer(target: string): Promise<ScriptedServer> {
  const requests = new Map<string, Seen[]>();
  const server = createServer(async (request, response) => {
    const [, place = '', name = '', url = ''] = /^(\/\w+\/(\w+))(\/.*)$/.exec(request.url ?? '') ?? [];
    const { method = 'GET', headers } = request;
    const earlier = requests.get(place) ?? [];
    const seen = { method, url, headers };
    requests.set(place, [...earlier, seen]);
    const body = await buffer(request);
    const own = new Headers(headers as Record<string, string>);
    for (const hop of ['host', 'connection', 'content-length', 'accept-encoding']) own.delete(hop);
    const pass = () => fetch(`${target}${url}`, { method, headers: own, ...(body.length > 0 ? { body } : {}) });
    await behaviours[name]?.(seen, earlier.length, response, pass);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
