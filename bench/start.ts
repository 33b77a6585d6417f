import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endWithThisProcess } from '../test/support/left-behind.ts';
import { projectRoot } from '../test/support/source.ts';

/**
 * How long `npm start` takes until `/readyz` returns 200, without data and with it, and what the idle server then holds.
 * Beside it: Node starting and ending, which says how busy the machine is.
 *   node bench/start.ts [--rounds 9]
 */
const roundsFlag = process.argv.indexOf('--rounds');
const rounds = roundsFlag < 0 ? 9 : Number(process.argv[roundsFlag + 1]);
const firstRounds = 3;
const clockTicksPerSecond = 100;

const first: Start[] = [];
const later: Start[] = [];
const bare: number[] = [];
for (let round = 0; round < firstRounds; round++) {
  const dataDir = mkdtempSync(join(tmpdir(), 'quarry-start-'));
  try {
    first.push(await start(dataDir));
    for (let repeat = 0; repeat < rounds / firstRounds; repeat++) {
      bare.push(await startBareNode());
      later.push(await start(dataDir));
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
  }
}
console.table({
  'first start': summarize(first),
  'start with data': summarize(later),
  'node, which exits': { seconds: round(median(bare)), 'worst seconds': round(Math.max(...bare)) },
});

type Start = { seconds: number; processorSeconds: number; stopSeconds: number; mib: number; privateMib: number };

async function start(dataDir: string): Promise<Start> {
  const startedAt = performance.now();
  const child = endWithThisProcess(
    spawn('npm', ['start', '--silent'], {
      cwd: projectRoot,
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
      env: {
        ...process.env,
        HOST: '127.0.0.1',
        PORT: '0',
        QUARRY_DATA_DIR: dataDir,
        QUARRY_PROCESSES: '1',
        QUARRY_LOG_LEVEL: 'warn',
      },
    }),
  );
  try {
    const url = await readAddress(child);
    while (!(await isReady(url)));
    const seconds = (performance.now() - startedAt) / 1000;
    const server = findServer(child.pid ?? 0);
    const processorSeconds = readProcessorSeconds(server);
    const memory = readFileSync(`/proc/${server}/smaps_rollup`, 'utf8');
    const stoppedAt = performance.now();
    process.kill(server, 'SIGTERM');
    await new Promise((resolve) => child.once('exit', resolve));
    return {
      ...{ seconds, processorSeconds },
      stopSeconds: (performance.now() - stoppedAt) / 1000,
      mib: readMib(memory, 'Rss'),
      privateMib: readMib(memory, 'Anonymous'),
    };
  } finally {
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGKILL');
  }
}

function readAddress(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    child.stdout?.on('data', (chunk) => {
      output += chunk;
      const address = /Quarry listens on (\S+)/.exec(output)?.[1];
      if (address !== undefined) resolve(address);
    });
    child.once('exit', () => reject(new Error(`The server exited:\n${output}`)));
  });
}

async function isReady(url: string): Promise<boolean> {
  const response = await fetch(`${url}/readyz`);
  await response.arrayBuffer();
  return response.status === 200;
}

/** npm starts a shell, which becomes the server. */
function findServer(pid: number): number {
  for (let last = pid; ; ) {
    const children = readFileSync(`/proc/${last}/task/${last}/children`, 'utf8').trim().split(' ');
    const next = Number(children[0]);
    const command = readFileSync(`/proc/${next}/cmdline`, 'utf8');
    if (command.includes('src/main.ts')) return next;
    last = next;
  }
}

async function startBareNode(): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, ['--eval', '0'], { stdio: 'ignore' });
  await new Promise((resolve) => child.once('exit', resolve));
  return (performance.now() - startedAt) / 1000;
}

function summarize(starts: Start[]) {
  const seconds = starts.map((each) => each.seconds);
  return {
    seconds: round(median(seconds)),
    'worst seconds': round(Math.max(...seconds)),
    'processor seconds': round(median(starts.map((each) => each.processorSeconds))),
    'seconds to stop': round(median(starts.map((each) => each.stopSeconds))),
    'resident MiB': round(median(starts.map((each) => each.mib))),
    'of it private MiB': round(median(starts.map((each) => each.privateMib))),
  };
}

/** The processor time of the server's own process so far, which depends little on the load of other programs. */
function readProcessorSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / clockTicksPerSecond;
}

function readMib(text: string, field: string): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]) / 1024;
}

function median(numbers: number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
