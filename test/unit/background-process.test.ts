import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { constants, getPriority } from 'node:os';
import { test } from 'node:test';
import { createExpressions } from '../../src/automations/engine/expressions.ts';
import { ParserPool } from '../../src/content/parse/pool/pool.ts';
import { createLogger } from '../../src/lib/log.ts';
import { until } from '../support/until.ts';

const priority = Math.min(constants.priority.PRIORITY_LOW, getPriority() + constants.priority.PRIORITY_BELOW_NORMAL);
const ofSession = Math.min(constants.priority.PRIORITY_LOW, getPriority() + 7);

/** The fields of a process or thread after its name, from proc_pid_stat(5): state, parent, group, session and so on. */
function readStat(path: string): string[] {
  return readFileSync(`${path}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
}

/** The processes of this one that run a program. */
function findChildren(program: RegExp): number[] {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').split(' ').filter(Boolean);
  return children.map(Number).filter((pid) => program.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8')));
}

async function assertGivesWay(program: RegExp): Promise<void> {
  const [pid] = findChildren(program);
  assert.ok(pid !== undefined, `no process runs ${program}`);
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const niceness: number = Number(readStat(`/proc/${pid}/task/${thread}`)[16]);
    assert.equal(niceness, priority, `the priority of thread ${thread} of ${program}`);
  }
  assert.equal(Number(readStat(`/proc/${pid}`)[3]), pid, 'its session is its own');
  const readGroup = () => {
    try {
      return readFileSync(`/proc/${pid}/autogroup`, 'utf8');
    } catch {
      return ''; // The system does not divide the processors among sessions.
    }
  };
  // Ordinary users can change it ten times a second, all together.
  if (readGroup() !== '') await until(() => readGroup().trim().endsWith(` nice ${ofSession}`));
}

test('parsers and expressions give way to the server and its database: each thread, and as a session', {
  skip: process.platform === 'linux' ? false : 'read from /proc',
}, async () => {
  const parsers = new ParserPool({ workers: 1, memoryMb: 192, deadlineMs: 60_000, log: createLogger('silent') });
  const expressions = createExpressions();
  const scope = { input: 1, nodes: {}, participants: {}, run: {}, secrets: {} };
  try {
    await parsers.run('kind', { bytes: Buffer.from('%PDF-1.7'), filename: 'a.pdf' });
    await assertGivesWay(/parse\/pool\/worker|parsers/);
    assert.equal(await expressions.evaluate('app', '$ + 1', scope), 2);
    await assertGivesWay(/expression-entry/);
  } finally {
    await expressions.close();
    await parsers.close();
  }
});
