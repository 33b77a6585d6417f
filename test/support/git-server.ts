import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { createGzip } from 'node:zlib';

type Access = {
  authorization?: string;
  /** Whether responses are compressed once more, by HTTP. */
  compresses?: boolean;
};

/** A repository behind git's own `http-backend`, and what was sent and received. */
export async function startGitServer({ authorization, compresses = false }: Access = {}) {
  const root = mkdtempSync(join(tmpdir(), 'quarry-git-'));
  const work = join(root, 'repository');
  const traffic = { sent: 0, requests: 0, headers: [] as (string | undefined)[], asked: '' };
  const run = (input: string, args: string[]) =>
    execFileSync('git', args, {
      ...{ cwd: work, input, maxBuffer: 64 * 1024 * 1024 },
      env: {
        PATH: process.env.PATH ?? '',
        HOME: root,
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_AUTHOR_NAME: 'a',
        GIT_AUTHOR_EMAIL: 'a@example.com',
        GIT_COMMITTER_NAME: 'a',
        GIT_COMMITTER_EMAIL: 'a@example.com',
      },
    }).toString();
  const git = Object.assign((...args: string[]) => run('', args), {
    withInput: (input: string, ...args: string[]) => run(input, args),
  });
  mkdirSync(work);
  git('init', '--quiet', '--initial-branch=main');
  git('config', 'uploadpack.allowFilter', 'true');
  const backend = join(execFileSync('git', ['--exec-path']).toString().trim(), 'git-http-backend');
  const server = createServer((request, response) => {
    traffic.requests += 1;
    traffic.headers.push(request.headers.authorization);
    const url = new URL(request.url ?? '/', 'http://git');
    if (url.pathname.startsWith('/moved')) {
      response.writeHead(301, {
        location: url.href.replace('http://git/moved', `http://127.0.0.1:${portOf()}/repository`),
      });
      return void response.end();
    }
    if (authorization !== undefined && request.headers.authorization !== authorization) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' });
      return void response.end();
    }
    const child = spawn(backend, {
      env: {
        PATH: process.env.PATH ?? '',
        HOME: root,
        GIT_CONFIG_NOSYSTEM: '1',
        GIT_HTTP_EXPORT_ALL: '1',
        GIT_PROJECT_ROOT: root,
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
        REQUEST_METHOD: request.method ?? '',
        PATH_INFO: url.pathname.replace('/repository', '/repository/.git'),
        QUERY_STRING: url.search.slice(1),
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        ...(request.headers['content-encoding'] && { HTTP_CONTENT_ENCODING: request.headers['content-encoding'] }),
      },
    });
    child.stdin.on('error', () => {});
    request.pipe(child.stdin);
    request.on('data', (chunk: Buffer) => {
      traffic.asked += chunk.toString();
    });
    let head = Buffer.alloc(0);
    let isBody = false;
    const body = compresses ? createGzip() : new PassThrough();
    if (compresses) response.setHeader('content-encoding', 'gzip');
    body.pipe(response);
    child.stdout.on('data', (chunk: Buffer) => {
      traffic.sent += chunk.length;
      if (isBody) return void body.write(chunk);
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return;
      isBody = true;
      for (const line of head.subarray(0, end).toString().split('\r\n')) {
        const [name = '', value = ''] = line.split(/: (.*)/s);
        if (name === 'Status') response.statusCode = Number.parseInt(value, 10);
        else response.setHeader(name, value);
      }
      body.write(head.subarray(end + 4));
    });
    child.on('close', () => body.end());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const portOf = () => (server.address() as AddressInfo).port;
  return {
    url: `http://127.0.0.1:${portOf()}/repository`,
    traffic,
    git,
    /** Writes files (null deletes one) and commits them. */
    commit(files: Record<string, string | null>): void {
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(work, path)), { recursive: true });
        if (text === null) rmSync(join(work, path));
        else writeFileSync(join(work, path), text);
      }
      git('add', '-A');
      git('commit', '--quiet', '--allow-empty', '-m', 'Change');
    },
    close(): void {
      server.closeAllConnections();
      server.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}
