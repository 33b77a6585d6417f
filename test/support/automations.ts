import type { TestApp } from './provisioner.ts';
import type { ApiResponse, TestServer } from './server.ts';

/** Helpers for tests of automations. */

export type Run = {
  id: string;
  automation: string;
  type: string;
  status: string;
  payload?: unknown;
  result?: unknown;
  error?: { code: string; message: string; node_id?: string };
  retried_from?: string;
  invoked_by?: string;
  event_id?: string;
};
type Entry = {
  id: string;
  sequence: number;
  type: string;
  node_id?: string;
  command_id?: string;
  timer_id?: string;
  record: {
    payload?: unknown;
    context?: { input: Record<string, unknown> };
    metadata?: Record<string, unknown>;
    environment?: Record<string, unknown>;
    timestamp: string;
  };
};
type JournalPage = {
  journal: { id: string; status: string; current_sequence: number } | null;
  data: Entry[];
  has_more: boolean;
  after_cursor?: string;
  resume_cursor?: string;
};

/** A graph of these nodes, which starts with the first. */
export function graphOf(...nodes: Record<string, unknown>[]) {
  return { kind: 'WorkflowGraph', version: 1, start_node: nodes[0]?.id, nodes };
}

const ends = new Set(['completed', 'failed', 'cancelled']);
const endTimeoutMs = 300_000;

export class AutomationsClient {
  readonly #server: Pick<TestServer, 'api'>;
  readonly #app: Pick<TestApp, 'secretKey'>;

  constructor(server: Pick<TestServer, 'api'>, app: Pick<TestApp, 'secretKey'>) {
    this.#server = server;
    this.#app = app;
  }

  call<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<ApiResponse<T>> {
    return this.#server.api<T>(method, `/api/v1${path}`, {
      key: this.#app.secretKey,
      ...(body === undefined ? {} : { body }),
    });
  }

  /** Creates and activates an automation. Throws with the response if either is refused. */
  async createAutomation(body: Record<string, unknown>): Promise<{ id: string }> {
    const created = await this.call<{ id: string }>('POST', '/automations', {
      name: 'test',
      type: 'invoked',
      ...body,
    });
    if (created.status !== 201) throw new Error(created.text);
    const active = await this.call('POST', `/automations/${created.body.id}/activate`);
    if (active.status !== 200) throw new Error(active.text);
    return created.body;
  }

  async invoke(automation: string, body: Record<string, unknown> = {}): Promise<Run> {
    const answer = await this.call<Run>('POST', `/automations/${automation}/invoke`, body);
    if (answer.status !== 200) throw new Error(answer.text);
    return answer.body;
  }

  async run(id: string): Promise<Run> {
    return (await this.call<Run>('GET', `/automation_runs/${id}`)).body;
  }

  /** Waits until the run is as wanted. Fails with its journal if the run ends otherwise or takes too long. */
  async waitUntil(id: string, wanted: (run: Run, journal: JournalPage) => boolean): Promise<Run> {
    const deadline = Date.now() + endTimeoutMs;
    for (;;) {
      const journal = await this.journalPage(id);
      const run = await this.run(id);
      if (wanted(run, journal)) return run;
      if (ends.has(run.status) || Date.now() > deadline)
        throw new Error(`${JSON.stringify(run)}\n${JSON.stringify(journal, null, 1)}`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  /** Waits for the end of a run. Reads the journal, which may be long, only if the run does not end. */
  async waitForEnd(id: string): Promise<Run> {
    const deadline = Date.now() + endTimeoutMs;
    while (Date.now() < deadline) {
      const run = await this.run(id);
      if (ends.has(run.status)) return run;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error(`The run did not end:\n${JSON.stringify(await this.journalPage(id), null, 1)}`);
  }

  waitUntilWaiting(id: string): Promise<Run> {
    return this.waitUntil(id, (_run, journal) => journal.journal?.status === 'waiting');
  }

  async journalPage(id: string, query = ''): Promise<JournalPage> {
    return (await this.call<JournalPage>('GET', `/automation_runs/${id}/journal${query}`)).body;
  }

  async journal(id: string): Promise<Entry[]> {
    const entries: Entry[] = [];
    let cursor = '';
    for (;;) {
      const page = await this.journalPage(id, `?limit=100${cursor}`);
      entries.push(...page.data);
      if (page.after_cursor === undefined) return entries;
      cursor = `&after_cursor=${page.after_cursor}`;
    }
  }

  /** Runs a graph once and returns the ended run. */
  async runGraph(workflow: unknown, payload: Record<string, unknown> = {}): Promise<Run> {
    const { id } = await this.createAutomation({ workflow });
    return this.waitForEnd((await this.invoke(id, { payload })).id);
  }
}

export function entryTypes(entries: Entry[]): string[] {
  return entries.map((entry) => (entry.node_id === undefined ? entry.type : `${entry.type} ${entry.node_id}`));
}
