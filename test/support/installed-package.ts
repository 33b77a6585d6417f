import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { npm } from './npm.ts';
import { projectRoot } from './source.ts';

/** A project that has installed the npm package of Quarry. */
export class InstalledPackage {
  /** Of the project and of what its tests write. */
  readonly directory = mkdtempSync(join(tmpdir(), 'quarry-package-'));
  readonly project = join(this.directory, 'project');
  readonly installed = join(this.project, 'node_modules', 'quarry');
  readonly env = {
    PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
    HOME: process.env.HOME,
    PORT: '0',
    QUARRY_PARSE_WORKERS: '1',
  };

  constructor() {
    mkdirSync(this.project);
  }

  /** Packs and installs as users do: with the documentation site, and what npm installs from its registry. */
  async install(): Promise<void> {
    await npm(projectRoot, 'pack', '--pack-destination', this.directory);
    const [archive = ''] = readdirSync(this.directory).filter((name) => name.endsWith('.tgz'));
    await npm(this.project, 'install', '--ignore-scripts', join('..', archive));
  }

  /**
   * Puts together what the package contains and copies of the packages that it names, for a tenth of the processor time
   * of npm. The documentation site is left out.
   */
  async assemble(): Promise<void> {
    await run(process.execPath, ['scripts/build.ts', '--without-site'], { cwd: projectRoot });
    const options = ['--dry-run', '--json', '--ignore-scripts', '--offline'];
    const { stdout } = await run('npm', ['pack', ...options], { cwd: projectRoot, maxBuffer: 64 << 20 });
    const [packed] = JSON.parse(stdout) as { files: { path: string }[] }[];
    for (const { path } of packed?.files ?? []) cpSync(join(projectRoot, path), join(this.installed, path));
    const modules = join(this.project, 'node_modules');
    // Not links: parsers may read nothing outside the installation.
    for (const [scope, names] of installedPackages()) {
      mkdirSync(join(modules, scope), { recursive: true });
      await run('cp', ['-a', ...names, join(modules, scope)], { cwd: join(projectRoot, 'node_modules', scope) });
    }
    mkdirSync(join(modules, '.bin'));
    symlinkSync('../quarry/bin/quarry.js', join(modules, '.bin', 'quarry'));
  }

  /** Runs the command. */
  quarry(...args: string[]) {
    return this.quarryWith({}, ...args);
  }

  quarryWith(settings: Record<string, string>, ...args: string[]) {
    return run(this.#command, args, { cwd: this.project, env: { ...this.env, ...settings } });
  }

  async withServer<T>(work: (url: string) => Promise<T>): Promise<T> {
    const server = await this.#start();
    try {
      return await work(server.url);
    } finally {
      assert.equal(await server.stop(), 0);
    }
  }

  close(): void {
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }

  /** What npx runs; npx itself would keep the signal that ends a server. */
  get #command(): string {
    return join(this.project, 'node_modules', '.bin', 'quarry');
  }

  async #start(): Promise<{ url: string; stop(): Promise<number | null> }> {
    const child: ChildProcess = spawn(this.#command, ['serve'], {
      cwd: this.project,
      env: this.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const listening = new Promise<string>((resolve) => {
      const read = (chunk: Buffer) => {
        output += String(chunk);
        const url = /listens on (http:\S+)/.exec(output)?.[1];
        if (url !== undefined) resolve(url);
      };
      child.stdout?.on('data', read);
      child.stderr?.on('data', read);
    });
    const url = await Promise.race([listening, exited.then(() => undefined)]);
    if (url === undefined) throw new Error(`The server did not start:\n${output}`);
    return {
      url,
      stop: () => {
        child.kill('SIGTERM');
        return exited;
      },
    };
  }
}

const run = promisify(execFile);

/** The packages that an installation without development dependencies brings to this machine, by scope. */
function installedPackages(): Map<string, string[]> {
  const lock = JSON.parse(readFileSync(join(projectRoot, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean }>;
  };
  const prefix = 'node_modules/';
  const names = Object.entries(lock.packages)
    .filter(([path, { dev }]) => path.startsWith(prefix) && !dev && existsSync(join(projectRoot, path)))
    .map(([path]) => path.slice(prefix.length))
    .filter((name) => !name.includes(prefix));
  const byScope = new Map<string, string[]>();
  for (const name of names) byScope.set(dirname(name), [...(byScope.get(dirname(name)) ?? []), basename(name)]);
  return byScope;
}
