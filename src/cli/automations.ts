import { readFileSync } from 'node:fs';
import { type AutomationFile, readAutomationFile } from '../automations/source-file.ts';
import { readConfig } from '../config.ts';
import { findCredentialsFile } from '../credentials-file.ts';

export type AutomationsOptions = { url?: string; key?: string; payload?: string; draft?: boolean };

const pollMs = 250;

/** `quarry automations validate <file>`: says what is wrong, by line and node. Answers the exit code. */
export function validate(path: string): number {
  return load(path) === undefined ? 1 : 0;
}

/** `quarry automations apply <file>`: creates the automation, or changes the one with its lookup key. */
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
  const api = connect(options);
  const payload: unknown = options.payload === undefined ? {} : JSON.parse(options.payload);
  const started = await api<Run>('POST', `/automations/${applied.id}/invoke`, { payload });
  process.stdout.write(`run ${started.id}\n`);
  let cursor = '';
  for (;;) {
    // The status first: a journal that is read after the end is whole.
    const present = await api<Run>('GET', `/automation_runs/${started.id}`);
    const page = await api<JournalPage>('GET', `/automation_runs/${started.id}/journal?limit=100${cursor}`);
    for (const entry of page.data) process.stdout.write(`${describe(entry)}\n`);
    if (page.resume_cursor !== undefined) cursor = `&after_cursor=${page.resume_cursor}`;
    if (page.has_more) continue;
    if (['completed', 'failed', 'cancelled'].includes(present.status)) {
      process.stdout.write(`${present.status} ${JSON.stringify(present.result ?? present.error ?? null)}\n`);
      return present.status === 'completed' ? 0 : 1;
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

type Automation = { id: string; status: string };
type Run = { id: string; status: string; result?: unknown; error?: unknown };
type Entry = { sequence: number; type: string; node_id?: string; record: { payload?: unknown; timestamp: string } };
type JournalPage = { data: Entry[]; has_more: boolean; resume_cursor?: string };

function load(path: string): AutomationFile | undefined {
  const { file, problems } = readAutomationFile(readFileSync(path, 'utf8'));
  for (const { line, column, node, message } of problems)
    process.stderr.write(`${path}:${line}:${column}: ${node === undefined ? '' : `node "${node}": `}${message}\n`);
  if (file) process.stdout.write(`${path} is valid\n`);
  return file;
}

async function applyFile(path: string, options: AutomationsOptions) {
  const automation = load(path)?.automation;
  if (!automation) {
    if (readAutomationFile(readFileSync(path, 'utf8')).file)
      process.stderr.write(`${path}: a bare graph can be validated, not applied: put it under "workflow"\n`);
    return undefined;
  }
  const key = automation.lookup_key;
  if (typeof key !== 'string') {
    process.stderr.write(`${path}: lookup_key is missing: by it the automation is found again\n`);
    return undefined;
  }
  const api = connect(options);
  const present = await find(api, key);
  const { type: _type, org: _org, team: _team, user: _user, ...changes } = automation;
  const applied = present
    ? await api<Automation>('PATCH', `/automations/${present.id}`, changes)
    : await api<Automation>('POST', '/automations', automation);
  const active =
    options.draft || applied.status === 'running'
      ? applied
      : await api<Automation>('POST', `/automations/${applied.id}/activate`);
  return { verb: present ? 'updated' : 'created', id: active.id, status: active.status };
}

type Api = <T>(method: string, path: string, body?: unknown) => Promise<T>;

class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

async function find(api: Api, key: string): Promise<Automation | undefined> {
  try {
    return await api<Automation>('GET', `/automations/${encodeURIComponent(key)}`);
  } catch (error) {
    if (error instanceof Refused && error.status === 404) return undefined;
    throw error;
  }
}

/** Talks to the server that the options name, else to the one whose credentials lie in the data directory. */
function connect(options: AutomationsOptions): Api {
  const own = findCredentialsFile(readConfig().dataDir);
  const url = options.url ?? own?.base_url;
  const key = options.key ?? own?.secret_key;
  if (url === undefined || key === undefined)
    throw new Error('No credentials.json in the data directory: say --url and --key.');
  return async <T>(method: string, path: string, body?: unknown) => {
    const answer = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { 'x-api-key': key, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Refused(answer.status, explain(answer.status, text));
    return JSON.parse(text) as T;
  };
}

function explain(status: number, text: string): string {
  type Body = { error?: { message?: string; fields?: { field: string; message: string }[] } };
  let body: Body = {};
  try {
    body = JSON.parse(text) as Body;
  } catch {
    // Not our server's answer: its status alone has to say it.
  }
  const fields = (body.error?.fields ?? []).map(({ field, message }) => `  ${field}: ${message}`);
  return [`${status}: ${body.error?.message ?? 'the server refused'}`, ...fields].join('\n');
}

function describe(entry: Entry): string {
  const payload = entry.record.payload === undefined ? '' : ` ${shorten(JSON.stringify(entry.record.payload))}`;
  return `${String(entry.sequence).padStart(5)} ${entry.type}${entry.node_id ? ` ${entry.node_id}` : ''}${payload}`;
}

function shorten(text: string): string {
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}
