import { styleText } from 'node:util';
import { readVariable } from '../../config/config.ts';
import type { Client } from '../client/client.ts';
import { findId } from '../client/names.ts';
import { confirm } from '../client/prompt.ts';
import { jsonLine, type Session } from '../client/session.ts';
import { ApiError } from '../errors.ts';
import { describeChange } from './compare.ts';
import { type Described, describeProblem, type Problem, readDirectory } from './directory.ts';
import { kinds, type Values, withDefaults } from './kinds.ts';
import { configPath, makePlan, type Plan, resolveValues, type Step, splitWriteOnly } from './plan.ts';
import { changeRecord, fingerprint, type RecordChange } from './record.ts';

export type ApplyOptions = { dryRun?: boolean; prune?: boolean; yes?: boolean };

/** The exit code of `--dry-run` if something would change. */
const wouldChange = 3;

/** `quarry apply <directory>`: makes the app what the files say. Returns the exit code. */
export async function apply(session: Session, root: string, options: ApplyOptions): Promise<number> {
  const plan = await readPlan(session, root, options);
  if (plan.problems.length > 0) return reportProblems(plan.problems);
  await printPlan(session, plan);
  if (options.dryRun) return plan.steps.length === 0 ? 0 : wouldChange;
  const doomed = plan.steps.filter(({ action }) => action === 'delete').length;
  if (doomed > 0) await confirm(`Delete ${doomed} of what apply created?`, options.yes);
  return reportProblems(await execute(session, plan));
}

/** The differences between a directory and the app. Files with mistakes are not compared. */
export async function readPlan(session: Session, root: string, { prune = false }: ApplyOptions): Promise<Plan> {
  const directory = readDirectory(root, readVariable);
  if (directory.problems.length > 0)
    return { name: directory.name, steps: [], unchanged: 0, left: [], problems: directory.problems, record: none };
  return makePlan(session.client, directory, { prune });
}

const none = { created: [], fingerprints: {} };

/** Prints mistakes as `file:line:col: message`. Returns the exit code. */
function reportProblems(problems: readonly Problem[]): number {
  for (const problem of problems) process.stderr.write(`${describeProblem(problem)}\n`);
  return problems.length === 0 ? 0 : 1;
}

const signs = { create: '+', update: '~', delete: '-' } as const;
const colours = { create: 'green', update: 'yellow', delete: 'red' } as const;

export async function printPlan(session: Session, { steps, left, unchanged }: Plan): Promise<void> {
  for (const step of steps) {
    const { action, kind, key } = step;
    const file = action === 'delete' ? undefined : step.file;
    const changes = action === 'update' ? step.changes : [];
    if (session.json) await session.print(jsonLine({ action, kind, key, file, changes }));
    else {
      const head = `${signs[action]} ${kind.padEnd(10)}  ${key}${file === undefined ? '' : `  (${file})`}`;
      await session.print(`${styleText(colours[action], head, { stream: process.stdout })}\n`);
      for (const change of changes) await session.print(`    ${describeChange(change)}\n`);
    }
  }
  for (const { kind, key } of left) session.say(`${kind} ${key} is no longer in the directory: --prune deletes it`);
  const count = (wanted: Step['action']) => steps.filter(({ action }) => action === wanted).length;
  if (!session.json && steps.length > 0)
    session.say(
      `${count('create')} to create, ${count('update')} to update, ${count('delete')} to delete, ${unchanged} unchanged`,
    );
  else if (!session.json) session.say(`Nothing to change: ${unchanged} unchanged`);
}

/** Does what the plan says, in its order. Stops at the first refusal and returns it; the next run continues from there. */
export async function execute(session: Session, plan: Plan): Promise<Problem[]> {
  const { client } = session;
  if (plan.steps.length === 0) return [];
  const change: RecordChange = { created: new Map(), deleted: new Set(), fingerprints: {} };
  // Recorded before it exists: if this process dies in between, `--prune` still knows it.
  const planned = plan.steps.filter(({ action }) => action === 'create');
  for (const { kind, key } of planned) change.created.set(`${kind} ${key}`, { kind, key });
  if (planned.length > 0) await changeRecord(client, plan.name, change);
  try {
    for (const step of plan.steps) {
      const { kind, key } = step;
      const done = await run(session, step).catch((error: unknown) => explain(error, step));
      if (step.action !== 'delete')
        for (const { field, message } of done.warnings ?? [])
          session.say(`Warning: ${describeProblem(placeOf(step, field, message))}`);
      if (step.action === 'create') change.created.set(`${kind} ${key}`, { kind, key, id: done.id });
      if (step.action === 'delete') change.deleted.add(`${kind} ${key}`);
      if (done.hidden !== undefined) change.fingerprints[`${kind} ${key}`] = fingerprint(done.hidden);
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return error.problems;
  } finally {
    await changeRecord(client, plan.name, change);
  }
  session.say(`Applied ${plan.steps.length}`);
  return [];
}

class Refusal extends Error {
  readonly problems: Problem[];
  constructor(problems: Problem[]) {
    super('refused');
    this.problems = problems;
  }
}

/** The server's refusal, at the members in the file. */
function explain(error: unknown, step: Step): never {
  if (!(error instanceof ApiError) || error.status === 0 || step.action === 'delete') throw error;
  const { described, file } = step;
  const places = error.fields.map(({ field, message }) => placeOf(step, field, `${field} ${message}`));
  const whole = { ...(described?.locate([]) ?? { line: 1, column: 1 }), file, message: error.message };
  throw new Refusal(places.length > 0 ? places : [whole]);
}

function placeOf({ described, file }: Exclude<Step, { action: 'delete' }>, field: string, message: string): Problem {
  return { ...(described?.locate(field.split('.')) ?? { line: 1, column: 1 }), file, message };
}

/** `warnings` are what in the request looks like a mistake. */
type Done = { id: string; hidden?: string | undefined; warnings?: Warning[] | undefined };
type Warning = { field: string; message: string };

async function run(session: Session, step: Step): Promise<Done> {
  const { client } = session;
  if (step.action === 'delete') {
    const kind = kinds.find(({ name }) => name === step.kind);
    await client.send('DELETE', kind ? `${kind.path}/${step.id}` : `/config/${configPath(step.key)}`);
    return { id: '' };
  }
  if (step.config) {
    const { path, content } = step.config;
    const type = step.action === 'update' ? step.config.type : typeOf(path);
    const body = { content, content_type: type };
    return client.send<{ id: string }>('PUT', `/config/${configPath(path)}`, { body });
  }
  if (!step.described) throw new Error('A step describes a resource or a config entry.');
  return step.action === 'create' ? create(session, step.described) : update(session, step);
}

async function create(session: Session, described: Described): Promise<Done> {
  const { kind, key } = described;
  const { status, ...body } = await valuesFor(session.client, described);
  const made = await session.client.send<Values & { id: string; warnings?: Warning[] }>('POST', kind.path, { body });
  const wanted = status ?? withDefaults(kind, {}).status;
  if (kind.status && wanted !== kind.status.initial) await setStatus(session.client, described, made.id, wanted);
  if (typeof made.secret === 'string')
    session.say(
      process.stdout.isTTY
        ? `The signing secret of webhook ${key} is ${made.secret}. It is not shown again.`
        : `webhook ${key} has a new signing secret: \`quarry webhooks rotate-secret ${key}\` shows another one`,
    );
  return { id: made.id, hidden: splitWriteOnly(kind, body).hidden, warnings: made.warnings };
}

async function update(session: Session, step: Step & { action: 'update' }): Promise<Done> {
  const { described, changes, id = '' } = step;
  if (!described) throw new Error('An update has a description.');
  const { kind } = described;
  const values = withDefaults(kind, await valuesFor(session.client, described));
  const changed = new Set(changes.map(({ path }) => path.split('.')[0] ?? ''));
  const body = Object.fromEntries([...changed].filter((name) => name !== 'status').map((name) => [name, values[name]]));
  const sent =
    Object.keys(body).length === 0
      ? undefined
      : await session.client.send<{ warnings?: Warning[] }>('PATCH', `${kind.path}/${id}`, { body });
  if (changed.has('status')) await setStatus(session.client, described, id, values.status);
  return { id, hidden: splitWriteOnly(kind, values).hidden, warnings: sent?.warnings };
}

/** The values of the request. By now, the sources that it names exist. */
async function valuesFor(client: Client, described: Described): Promise<Values> {
  const problems: Problem[] = [];
  const values = await resolveValues(described, (kind, name) => findId(client, kind, name), problems);
  if (problems.length > 0) throw new Refusal(problems);
  return values;
}

async function setStatus(client: Client, { kind }: Described, id: string, status: unknown): Promise<void> {
  await client.send('POST', `${kind.path}/${id}/${kind.status?.requests[String(status)]}`);
}

const types: { [extension: string]: string } = {
  ...{ md: 'text/markdown', json: 'application/json', yaml: 'application/yaml', yml: 'application/yaml' },
  ...{ html: 'text/html', csv: 'text/csv' },
};

function typeOf(path: string): string {
  return types[/\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? ''] ?? 'text/plain';
}
