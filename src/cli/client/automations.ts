import { readFileSync } from 'node:fs';
import { type AutomationFile, readAutomationFile } from '../../automations/definitions/source-file.ts';
import { ApiError } from '../errors.ts';
import { type Client, type ConnectionOptions, connect } from './client.ts';
import { readJsonObject } from './ingest.ts';
import { describeEnd, describeEntry, followRun, type Run } from './runs.ts';

export type AutomationsOptions = ConnectionOptions & { payload?: string; draft?: boolean };

/** `quarry automations validate <file>`: reports problems by line and node. Returns the exit code. */
export function validate(path: string): number {
  return loadFile(path) === undefined ? 1 : 0;
}

/** `quarry automations apply <file>`: creates the automation, or updates the one with its lookup key. */
export async function apply(path: string, options: AutomationsOptions): Promise<number> {
  const applied = await applyFile(path, options);
  if (!applied) return 1;
  process.stdout.write(`${applied.verb} ${applied.id} (${applied.status})\n`);
  return 0;
}

/** `quarry automations run <file>`: applies it, invokes it and prints its journal until it ends. */
export async function run(path: string, options: AutomationsOptions): Promise<number> {
  const applied = await applyFile(path, { ...options, draft: false });
  if (!applied) return 1;
  const client = connectClient(options);
  const payload = options.payload === undefined ? {} : readJsonObject('--payload', options.payload);
  const started = await client.send<Run>('POST', `/automations/${applied.id}/invoke`, { body: { payload } });
  process.stdout.write(`run ${started.id}\n`);
  const ended = await followRun(client, started.id, (entry) => {
    process.stdout.write(`${describeEntry(entry)}\n`);
  });
  process.stdout.write(`${describeEnd(ended)}\n`);
  return ended.status === 'completed' ? 0 : 1;
}

type Automation = { id: string; status: string };

/** Ctrl-C exits immediately. Requests that were sent are still processed. */
function connectClient(options: AutomationsOptions): Client {
  return connect(options, new AbortController().signal);
}

function loadFile(path: string): AutomationFile | undefined {
  const { file, problems } = readAutomationFile(readFileSync(path, 'utf8'));
  for (const { line, column, node, message } of problems)
    process.stderr.write(`${path}:${line}:${column}: ${node === undefined ? '' : `node "${node}": `}${message}\n`);
  if (file) process.stdout.write(`${path} is valid\n`);
  return file;
}

async function applyFile(path: string, options: AutomationsOptions) {
  const automation = loadFile(path)?.automation;
  if (!automation) {
    if (readAutomationFile(readFileSync(path, 'utf8')).file)
      process.stderr.write(`${path}: a bare graph can be validated but not applied: put it under "workflow"\n`);
    return undefined;
  }
  const key = automation.lookup_key;
  if (typeof key !== 'string') {
    process.stderr.write(`${path}: lookup_key is missing: it identifies the automation\n`);
    return undefined;
  }
  const client = connectClient(options);
  const present = await findAutomation(client, key);
  const { type: _type, org: _org, team: _team, user: _user, ...changes } = automation;
  const applied = present
    ? await client.send<Automation>('PATCH', `/automations/${present.id}`, { body: changes })
    : await client.send<Automation>('POST', '/automations', { body: automation });
  const active =
    options.draft || applied.status === 'running'
      ? applied
      : await client.send<Automation>('POST', `/automations/${applied.id}/activate`);
  return { verb: present ? 'updated' : 'created', id: active.id, status: active.status };
}

async function findAutomation(client: Client, key: string): Promise<Automation | undefined> {
  try {
    return await client.send<Automation>('GET', `/automations/${encodeURIComponent(key)}`);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}
