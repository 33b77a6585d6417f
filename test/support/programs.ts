import type { AutomationsClient } from './automations.ts';
import type { ApiResponse, ErrorBody } from './server.ts';

/** Helpers for tests of workflows in code, over the bare API. */

type WorkEntry = {
  sequence: number;
  type: string;
  node_id?: string;
  command_id?: string;
  timer_id?: string;
  record: { payload?: unknown; metadata?: Record<string, unknown>; environment?: Record<string, unknown> };
};
type Claimed = {
  run: { id: string; status: string; payload: unknown };
  claim: string;
  lease_until: string;
  sequence: number;
  journal: WorkEntry[];
  after_cursor?: string;
};
type Appended = {
  sequence: number;
  cancel_requested: boolean;
  lease_until?: string;
  command_ids: Record<string, string>;
  entries: WorkEntry[];
} & ErrorBody;

export function programOf(name: string) {
  return { kind: 'WorkflowProgram', version: 1, name };
}

export class ProgramWorker {
  readonly client: AutomationsClient;
  readonly #version: string;

  constructor(client: AutomationsClient, version = 'v1') {
    this.client = client;
    this.#version = version;
  }

  claim(automation: string, more: Record<string, unknown> = {}): Promise<ApiResponse<Claimed>> {
    return this.client.call('POST', '/automation_work/claim', {
      ...{ automations: [automation], code_version: this.#version, lease_seconds: 60, ...more },
    });
  }

  /** Waits for a run: one that another transaction has locked is passed over. */
  async take(automation: string, more: Record<string, unknown> = {}): Promise<Work> {
    const claimed = await this.claim(automation, { wait_seconds: 30, ...more });
    if (claimed.status !== 200) throw new Error(`${claimed.status} ${claimed.text}`);
    return new Work(this.client, claimed.body);
  }
}

/** A claimed run, which keeps the sequence that the next batch follows. */
class Work {
  readonly client: AutomationsClient;
  readonly claimed: Claimed;
  sequence: number;

  constructor(client: AutomationsClient, claimed: Claimed) {
    this.client = client;
    this.claimed = claimed;
    this.sequence = claimed.sequence;
  }

  get run(): string {
    return this.claimed.run.id;
  }

  send(entries: unknown[], more: Record<string, unknown> = {}): Promise<ApiResponse<Appended>> {
    const { claim } = this.claimed;
    const body = { claim, after_sequence: this.sequence, entries, ...more };
    return this.client.call('POST', `/automation_runs/${this.run}/entries`, body);
  }

  async write(entries: unknown[], more: Record<string, unknown> = {}): Promise<Appended> {
    const appended = await this.send(entries, more);
    if (appended.status !== 200) throw new Error(`${appended.status} ${appended.text}`);
    this.sequence = appended.body.sequence;
    return appended.body;
  }
}

export const started = (node_id: string, more: Record<string, unknown> = {}) => ({
  ...{ type: 'node_started', node_id, kind: 'step', ...more },
});
export const completed = (node_id: string, payload?: unknown) => ({ type: 'node_completed', node_id, payload });

/** The code of an error that an entry has as its payload. */
export function codeOf(entry: { record: { payload?: unknown } } | undefined): unknown {
  return (entry?.record.payload as { code?: unknown } | undefined)?.code;
}
