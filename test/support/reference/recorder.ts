import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { OperationExample } from '../../../src/http/openapi/examples.ts';
import { formatId, type IdKind, idPrefixes, nativeId } from '../../../src/lib/ids.ts';
import type { ApiOptions, TestServer } from '../server.ts';

type Json = Record<string, unknown>;
/** What a request needs in addition to its credential. The rest of the path comes from the operation. */
type Sent = { path?: Record<string, string>; query?: Record<string, string>; as?: ApiOptions; body?: unknown };
type Variants = NonNullable<OperationExample['variants']>;

/** Sends real requests, and records each with its response as the example of its operation. */
export class Recorder {
  readonly #server: TestServer;
  readonly #as: ApiOptions;
  readonly #examples: Record<string, OperationExample> = {};
  readonly #variants: Record<string, Variants> = {};

  constructor(server: TestServer, as: ApiOptions) {
    this.#server = server;
    this.#as = as;
  }

  /**
   * Fails unless the operation succeeds. `show` returns what the example shows of the response, for example without
   * parts that are too long.
   */
  async record<T extends Json = Json & { id: string }>(
    operationId: string,
    sent: Sent = {},
    show: (body: T) => unknown = (body) => body,
  ): Promise<T> {
    const { status, body, text } = await this.send<T>(operationId, sent);
    assert.ok(status >= 200 && status < 400, `${operationId}: ${status} ${text}`);
    const event = /^data: (.*)$/m.exec(text)?.[1];
    const isStream = operationId.startsWith('stream');
    const shown = isStream ? text : event === undefined ? body : JSON.parse(event);
    const {
      path,
      request,
      responses = {},
    } = this.#examples[operationId] ?? {
      ...(sent.path === undefined ? {} : { path: sent.path }),
      // Bytes are not shown as an example.
      ...(sent.body === undefined || typeof sent.body === 'string' ? {} : { request: sent.body }),
    };
    this.#examples[operationId] = {
      ...(path === undefined ? {} : { path }),
      ...(request === undefined ? {} : { request }),
      responses: shown === undefined || status in responses ? responses : { ...responses, [status]: await show(shown) },
    };
    return body;
  }

  /** Records one more example of an operation. */
  async recordVariant(operationId: string, name: string, summary: string, sent: Sent): Promise<{ id: string }> {
    const { status, body, text } = await this.send<{ id: string }>(operationId, sent);
    assert.ok(status >= 200 && status < 300, `${operationId}: ${status} ${text}`);
    const request = sent.body === undefined ? {} : { request: sent.body };
    const variant = { summary, ...request, responses: { [status]: body } };
    this.#variants[operationId] = { ...this.#variants[operationId], [name]: variant };
    return body;
  }

  /** Requests the URL of a file in a response, such as `…/files/fil_…/avatar?token=…`. */
  async recordUrl(operationId: string, url: string): Promise<void> {
    const { pathname, searchParams } = new URL(url);
    const file = pathname.split('/').at(-2) ?? '';
    await this.record(operationId, { path: { file }, query: Object.fromEntries(searchParams), as: {} });
  }

  /** Repeats a request until the response is as wanted, and records the last one. */
  async until(operationId: string, sent: Sent, wanted: (body: Json) => boolean): Promise<Json> {
    await this.waitFor(operationId, sent, wanted);
    return this.record<Json>(operationId, sent);
  }

  /** Repeats a request until the response is as wanted, and returns it. Records no example. */
  async waitFor(operationId: string, sent: Sent, wanted: (body: Json) => boolean): Promise<Json> {
    for (let tries = 0; tries < 1_200; tries++) {
      const { body } = await this.send(operationId, sent);
      if (wanted(body)) return body;
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    throw new Error(`${operationId} never returned what was waited for.`);
  }

  send<T = Json>(operationId: string, { path = {}, query, as = this.#as, body }: Sent = {}) {
    const route = this.#server.server.api.routes.find((each) => each.operationId === operationId);
    assert.ok(route, operationId);
    const filled = route.path
      .replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(path[name] ?? ''))
      .replace('*', path.path ?? '');
    const search = query === undefined ? '' : `?${new URLSearchParams(query)}`;
    return this.#server.api<T>(route.method, filled + search, { ...as, ...(body === undefined ? {} : { body }) });
  }

  /** The examples without what differs between recordings: ids, times, credentials, addresses. */
  examples(): Record<string, OperationExample> {
    const stable = new Stable(this.#server.baseUrl);
    const examples = stable.value('', this.#examples) as Record<string, OperationExample>;
    // Variants come last, so that the ids in all other examples stay the same.
    const variants = stable.value('', this.#variants) as Record<string, Variants>;
    return Object.fromEntries(
      Object.entries(examples).map(([id, example]) => [
        id,
        { ...example, ...(variants[id] ? { variants: variants[id] } : {}) },
      ]),
    );
  }
}

const kindOf = new Map(Object.entries(idPrefixes).map(([kind, [prefix]]) => [prefix as string, kind as IdKind]));
const shownTime = '2026-03-02T09:30:00.000Z';

/** Replaces text with text that looks like the original and is the same in every recording. */
class Stable {
  readonly #baseUrl: string;
  readonly #ids = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  value(member: string, given: unknown): unknown {
    if (typeof given === 'string') return this.#text(member, given);
    if (typeof given === 'number' && /_at$/.test(member)) return Date.parse(shownTime) / 1_000;
    if (typeof given === 'number' && member.endsWith('_ms')) return 1;
    if (typeof given === 'number') return member === 'requests' ? Math.min(given, 1) : given;
    if (Array.isArray(given)) return given.map((each) => this.value(member, each));
    if (given === null || typeof given !== 'object') return given;
    return Object.fromEntries(Object.entries(given).map(([key, each]) => [this.#text('', key), this.value(key, each)]));
  }

  #text(member: string, text: string): string {
    if (/cursor$/.test(member)) return /^[a-z]{3}_/.test(text) ? this.#id(text) : 'eyJhZnRlciI6NDJ9';
    if (member === 'hint') return text.slice(0, 3).padEnd(8, 'E');
    if (member === 'csrf_token') return 'CSRF_TOKEN';
    // What an assistant asks for, encrypted.
    if (member === 'request' && text.length > 200) return 'EXAMPLE';
    // The path of a link to an approval.
    if (member === 'token' && /^[\w-]{86}$/.test(text)) return 'EXAMPLE';
    // The signing key of the server, and what it signs.
    if (/^(?:key_id|public_key|signature)$/.test(member) && /^[0-9a-f]{16,}$/.test(text))
      return text.replace(/./g, (_, at: number) => (at % 16).toString(16));
    if (member === 'worker') return 'host/1/231ebc';
    return text
      .replaceAll(this.#baseUrl, 'https://quarry.example.com')
      .replace(/http:\/\/127\.0\.0\.1:\d+/g, 'https://example.com')
      .replace(/\b(sk|pk|rt|sat|dvt|whs|csl)_[\w-]{20,}/g, '$1_EXAMPLE')
      .replace(/\bwhsec_[\w+/=]+/g, 'whsec_EXAMPLE')
      .replace(/\beyJ[\w-]+\.[\w-]+\.[\w-]+/g, 'ACCESS_TOKEN')
      .replace(/(token|signature|state|nonce|code_challenge)=[\w.~%-]+/g, '$1=EXAMPLE')
      .replace(/\/(inbound|approval_links)\/[\w-]+/g, '/$1/EXAMPLE')
      .replace(/expires=\d+/g, 'expires=1772445600')
      .replace(/\b\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)/g, shownTime)
      .replace(/\b\d{4}-\d\d-\d\d\b(?!T)/g, shownTime.slice(0, 10))
      .replace(
        /\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b/g,
        '019cadb5-79c0-7000-8000-000000000000',
      )
      .replace(/\b[a-z]{3}_[0-9A-Za-z]{22}\b/g, (id) => this.#id(id))
      .replace(
        /\b(file-|vs_|vsfb_)([0-9A-Za-z]{22})\b/g,
        (id, prefix: string) => prefix + this.#id(nativeId(id)).slice(4),
      )
      .replace(
        /\b(resp_|fs_|msg_)([0-9A-Za-z]{22})(?![0-9A-Za-z])/g,
        (_, prefix: string, suffix: string) => prefix + this.#like(`response ${suffix}`, 'response', 'file').slice(4),
      );
  }

  #id(id: string): string {
    const prefix = id.slice(0, 3);
    const kind = kindOf.get(prefix);
    return kind === undefined ? id : this.#like(id, prefix, kind);
  }

  #like(id: string, prefix: string, kind: IdKind): string {
    const known = this.#ids.get(id);
    if (known !== undefined) return known;
    const count = (this.#counts.get(prefix) ?? 0) + 1;
    this.#counts.set(prefix, count);
    const hex = createHash('sha256').update(`${prefix} ${count}`).digest('hex');
    const tail = `7${hex.slice(0, 3)}-8${hex.slice(3, 6)}-${hex.slice(6, 18)}`;
    const shown = formatId(kind, `019cadb5-79c0-${tail}`);
    this.#ids.set(id, shown);
    return shown;
  }
}
