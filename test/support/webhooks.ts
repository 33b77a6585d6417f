import assert from 'node:assert/strict';
import { addJob } from '../../src/jobs/queue.ts';
import type { TestServer } from './server.ts';

export type TestWebhook = {
  id: string;
  url: string;
  events: string[];
  status: string;
  paused_reason?: string;
  failing_since?: string;
  secret?: string;
  previous_secret_until?: string;
};

export type TestDelivery = {
  id: string;
  webhook: string;
  event: string;
  type: string;
  sequence: number;
  state: string;
  attempts: number;
  log: { at: string; duration_ms: number; status?: number; error?: { code: string; message: string } }[];
  next_attempt_at?: string;
  delivered_at?: string;
};

const lookMs = 10;

/** The webhooks of the app that this key belongs to. */
export class WebhooksClient {
  readonly #server: TestServer;
  readonly #key: string;

  constructor(server: TestServer, key: string) {
    this.#server = server;
    this.#key = key;
  }

  api<T = Record<string, unknown>>(method: string, path: string, body?: unknown) {
    return this.#server.api<T>(method, `/api/v1${path}`, { key: this.#key, ...(body === undefined ? {} : { body }) });
  }

  async create(url: string, events: string[]): Promise<TestWebhook & { secret: string }> {
    const made = await this.api<TestWebhook & { secret: string }>('POST', '/webhooks', { url, events });
    assert.equal(made.status, 201, made.text);
    return made.body;
  }

  async get(id: string): Promise<TestWebhook> {
    return (await this.api<TestWebhook>('GET', `/webhooks/${id}`)).body;
  }

  /** Returns the id of the event. */
  async emit(name: string, payload: unknown = {}): Promise<string> {
    const made = await this.api<{ id: string }>('POST', '/events', { name, payload });
    assert.equal(made.status, 201, made.text);
    return made.body.id;
  }

  async deliveries(id: string, query = ''): Promise<TestDelivery[]> {
    const list = await this.api<{ data: TestDelivery[] }>('GET', `/webhooks/${id}/deliveries?page_size=100${query}`);
    assert.equal(list.status, 200, list.text);
    return list.body.data;
  }

  /** Resolves with the webhook's newest delivery when it is as wanted. */
  async waitForDelivery(id: string, isWanted: (delivery: TestDelivery) => boolean): Promise<TestDelivery> {
    for (;;) {
      const [newest] = await this.deliveries(id);
      if (newest !== undefined && isWanted(newest)) return newest;
      await new Promise((resolve) => setTimeout(resolve, lookMs));
    }
  }

  /** Delivers what is due now, as the server does every ten seconds. */
  async deliverDue(): Promise<void> {
    await addJob(this.#server.db, 'deliver_due', {});
  }
}
