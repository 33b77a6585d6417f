import { hash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError, UsageError } from '../errors.ts';
import { readSecret } from './actions.ts';
import { type Client, connect } from './client.ts';
import { jsonLine, type Session } from './session.ts';

/*
 * `quarry move` copies the data of one app from one server to another through the public API, with a secret key for each.
 * Either server may be a hosted service; docs/migrating.md lists what is copied and what cannot be.
 *
 * The map records which id became which. It is written after each resource, so an interrupted run can be repeated, and
 * a later run copies what is new. Nothing is deleted or changed on the source server.
 */

type Resource = Record<string, unknown> & { id: string };
type Page = { data: Resource[]; has_next?: boolean };

const kinds = ['orgs', 'users', 'teams', 'agents', 'files', 'kv', 'sources', 'automations'] as const;
type Kind = (typeof kinds)[number];

export type MoveOptions = { from: string; fromKey: string; only?: string; map: string };

const attemptsMax = 8;
const pauseMs = 1_000;

/** One server, as visible to a secret key of one app. Retries while the server is busy (429, 503). */
class Server {
  readonly client: Client;
  readonly #signal: AbortSignal;

  constructor(client: Client, signal: AbortSignal) {
    this.client = client;
    this.#signal = signal;
  }

  call<T>(method: 'GET' | 'POST' | 'PUT' | 'PATCH', path: string, body?: unknown): Promise<T> {
    return this.retry(() => this.client.send<T>(method, path, body === undefined ? {} : { body }));
  }

  async retry<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++)
      try {
        return await work();
      } catch (error) {
        const isBusy = error instanceof ApiError && [429, 503].includes(error.status);
        if (!isBusy || attempt >= attemptsMax) throw error;
        await sleep(pauseMs * attempt, undefined, { signal: this.#signal });
      }
  }

  async *list(path: string, query: Record<string, string> = {}): AsyncGenerator<Resource> {
    for (let page = 1; ; page++) {
      const search = new URLSearchParams({ ...query, page: String(page), page_size: '100' });
      const { data, has_next } = await this.call<Page>('GET', `${path}?${search}`);
      yield* data;
      if (!has_next) return;
    }
  }
}

/** Maps old ids to new ones, in a file. */
class IdMap {
  readonly #file: string;
  readonly #ids: Record<string, string>;

  constructor(file: string) {
    this.#file = file;
    this.#ids = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>) : {};
  }

  find(old: unknown): string | undefined {
    return typeof old === 'string' ? this.#ids[old] : undefined;
  }

  keep(old: string, now: string): void {
    this.#ids[old] = now;
    writeFileSync(this.#file, `${JSON.stringify(this.#ids, null, 2)}\n`);
  }
}

/** One move: both servers, the map of ids, and the counts of each kind. */
class Job {
  readonly from: Server;
  readonly to: Server;
  readonly moved: IdMap;
  readonly counts: Record<string, { moved: number; there: number; left: number }> = {};
  readonly #session: Session;

  constructor(from: Server, to: Server, moved: IdMap, session: Session) {
    this.from = from;
    this.to = to;
    this.moved = moved;
    this.#session = session;
  }

  /** Creates one resource on the target unless an earlier run did, and records it. Reports and skips a resource that fails. */
  async move(kind: string, old: string, name: string, make: () => Promise<string>): Promise<void> {
    this.counts[kind] ??= { moved: 0, there: 0, left: 0 };
    const count = this.counts[kind];
    if (this.moved.find(old) !== undefined) {
      count.there += 1;
      return;
    }
    try {
      this.#session.progress.show(`${kind}: ${count.moved} moved, ${name}`);
      this.moved.keep(old, await make());
      count.moved += 1;
    } catch (error) {
      if (this.#session.signal.aborted) throw error;
      count.left += 1;
      this.#session.say(`left ${kind} ${old} (${name}): ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async create(path: string, body: unknown): Promise<string> {
    return (await this.to.call<Resource>('POST', path, body)).id;
  }

  /** The members of a resource, with new ids in those named `reference`. */
  pick(thing: Resource, members: string[], references: string[] = []): Record<string, unknown> {
    const picked: Record<string, unknown> = {};
    for (const name of members) if (thing[name] !== undefined && thing[name] !== null) picked[name] = thing[name];
    for (const name of references) {
      if (thing[name] === undefined || thing[name] === null) continue;
      const now = this.moved.find(thing[name]);
      if (now === undefined) throw new Error(`its ${name} ${String(thing[name])} was not moved`);
      picked[name] = now;
    }
    return picked;
  }
}

const movers: Record<Kind, (job: Job) => Promise<void>> = {
  async orgs(job) {
    for await (const org of job.from.list('/orgs'))
      await job.move('orgs', org.id, String(org.name), () => job.create('/orgs', job.pick(org, ['name', 'slug'])));
  },

  async users(job) {
    // Passwords cannot be read: users set new ones, or sign in through your own server's tokens.
    const there = new Map<unknown, string>();
    for await (const user of job.to.list('/users')) if (user.email) there.set(user.email, user.id);
    for await (const user of job.from.list('/users'))
      await job.move('users', user.id, String(user.email), async () => {
        const same = there.get(user.email);
        const members = ['email', 'name', 'org_role', 'is_system_user', 'metadata'];
        return same ?? job.create('/users', job.pick(user, members, ['org']));
      });
  },

  async teams(job) {
    for await (const team of job.from.list('/teams'))
      await job.move('teams', team.id, String(team.name), async () => {
        const id = await job.create('/teams', job.pick(team, ['name', 'description', 'metadata'], ['org']));
        for await (const member of job.from.list(`/teams/${team.id}/members`)) {
          const user = job.moved.find((member.user as Resource | undefined)?.id);
          if (user !== undefined) await job.to.call('POST', `/teams/${id}/members`, { user, role: member.role });
        }
        return id;
      });
  },

  async agents(job) {
    const members = [
      'name',
      'lookup_key',
      'description',
      'identity',
      'email',
      'phone_number',
      'originator',
      'metadata',
    ];
    for await (const agent of job.from.list('/agents'))
      await job.move('agents', agent.id, String(agent.name), () =>
        job.create('/agents', {
          ...job.pick(agent, members),
          // An agent's org is its owner's, if it has one.
          ...job.pick(agent, [], agent.team ? ['team'] : agent.user ? ['user'] : ['org']),
          ...(agent.default_model ? { model: agent.default_model } : {}),
        }),
      );
  },

  async files(job) {
    for await (const file of job.from.list('/files'))
      await job.move('files', file.id, String(file.filename), async () => {
        const owners = job.pick(file, [], file.agent ? ['agent', 'team', 'user'] : ['org', 'team', 'user']);
        const { url } = await job.from.call<{ url: string }>('GET', `/files/${file.id}`);
        const bytes = await readAll(await job.from.client.download(url));
        const checksum = hash('sha256', bytes);
        if (file.checksum !== undefined && checksum !== file.checksum)
          throw new Error('its bytes do not match its checksum');
        const query = new URLSearchParams(owners as Record<string, string>);
        if (file.shared) query.set('share', 'true');
        const headers = {
          'content-type': String(file.content_type),
          'x-filename': encodeURIComponent(String(file.filename)),
        };
        const made = await job.to.retry(() =>
          job.to.client.upload<Resource>(`/files/uploads?${query}`, {
            headers,
            body: piecesOf(bytes),
            bytes: bytes.length,
          }),
        );
        if (made.checksum !== checksum) throw new Error('the copy has different bytes');
        const grants = grantsOf(job, file);
        if (grants.length > 0 || Object.keys((file.provider_metadata as object) ?? {}).length > 0)
          await job.to.call('PATCH', `/files/${made.id}`, {
            ...job.pick(file, ['provider_metadata']),
            ...(grants.length > 0 ? { acl: { grants } } : {}),
          });
        return made.id;
      });
  },

  async kv(job) {
    for await (const entry of job.from.list('/kv')) {
      const { user, key } = entry as unknown as { user: string; key: string };
      await job.move('kv', `${user}/${key}`, key, async () => {
        const path = `/kv/${encodeURIComponent(key)}?user=`;
        const { value } = await job.from.call<{ value: string }>('GET', `${path}${user}`);
        await job.to.call('PUT', `/kv/${encodeURIComponent(key)}`, { value, user: job.pick(entry, [], ['user']).user });
        return key;
      });
    }
  },

  async sources(job) {
    for await (const source of job.from.list('/knowledge_sources')) {
      await job.move('sources', source.id, String(source.type), () => {
        const owner = ['agent', 'team', 'user', 'org'].find(
          (name) => source[name] !== null && source[name] !== undefined,
        );
        const payload = { ...((source.payload as Record<string, unknown>) ?? {}) };
        for (const name of ['file', 'file_id'])
          if (payload[name] !== undefined) payload[name] = job.moved.find(payload[name]) ?? payload[name];
        return job.create('/knowledge_sources', {
          ...job.pick(source, ['type', 'lookup_key', 'metadata', 'state'], owner === undefined ? [] : [owner]),
          payload,
        });
      });
      const target = job.moved.find(source.id);
      if (target === undefined) continue;
      // Pulled sources are pulled again; pushed documents are pushed again, as the text that was extracted from them.
      if (source.type === 'knowledge/documents') await moveDocuments(job, source.id, target);
      else if (pulled.has(String(source.type)))
        await job.move('pulls', `${source.id}/pull`, String(source.type), () =>
          job.create(`/knowledge_sources/${target}/ingest`, { pull: true }),
        );
    }
  },

  async automations(job) {
    const members = ['name', 'lookup_key', 'description', 'type', 'trigger', 'filter', 'schedule', 'timezone'];
    members.push(
      'workflow',
      'input_schema',
      'invoke_auth',
      'max_concurrent_runs',
      'max_pending_runs',
      'concurrency',
      'rate',
      'timeout_seconds',
      'retention',
      'metadata',
    );
    // Created as drafts, so that nothing runs on both sides: activate each when you are ready.
    for await (const automation of job.from.list('/automations'))
      await job.move('automations', automation.id, String(automation.name), () =>
        job.create('/automations', {
          ...job.pick(automation, members, ['run_as_user', 'run_as_agent']),
          ...job.pick(automation, [], automation.team ? ['team'] : automation.user ? ['user'] : ['org']),
        }),
      );
  },
};

const pulled = new Set(['scrape/site', 'web/link', 'file/document']);

async function moveDocuments(job: Job, source: string, target: string): Promise<void> {
  for await (const document of job.from.list('/knowledge_documents', { source }))
    await job.move('documents', document.id, String(document.title), async () => {
      const { content } = await job.from.call<{ content: string }>(
        'GET',
        `/knowledge_documents/${document.id}/content`,
      );
      const type = String(document.content_type ?? 'text/markdown');
      const content_type = type.startsWith('text/') ? type : 'text/markdown';
      return job.create(`/knowledge_sources/${target}/ingest`, {
        content: { data: content, content_type },
        on_active: 'queue',
        ...job.pick(document, ['title', 'metadata']),
        // Without the principals that were not moved, fewer people see it.
        ...(document.acl === undefined ? {} : { acl: { grants: grantsOf(job, document) } }),
      });
    });
}

/** Only grants to principals that were moved; others would be refused. */
function grantsOf(job: Job, file: Resource): Record<string, unknown>[] {
  const { grants = [] } = (file.acl as { grants?: Record<string, unknown>[] } | undefined) ?? {};
  return grants.flatMap((grant) => {
    const principal = job.moved.find(grant.principal);
    if (principal !== undefined) return [{ ...grant, principal }];
    return ['everyone', 'org_role'].includes(String(grant.principal_type)) ? [grant] : [];
  });
}

async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const read: Uint8Array[] = [];
  for await (const chunk of chunks) read.push(chunk);
  return Buffer.concat(read);
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** `quarry move --from <url>`: copies an app to the server of the session. Exit code 1 if anything was left. */
export async function move(session: Session, options: MoveOptions): Promise<number> {
  const wanted = options.only?.split(',') ?? [...kinds];
  const unknown = wanted.filter((kind) => !(kinds as readonly string[]).includes(kind));
  if (unknown.length > 0) throw new UsageError(`Unknown: ${unknown.join(', ')}. Known are ${kinds.join(', ')}.`);
  const source = connect({ url: options.from, key: await readSecret(options.fromKey) }, session.signal);
  const servers = [new Server(source, session.signal), new Server(session.client, session.signal)] as const;
  const job = new Job(...servers, new IdMap(options.map), session);
  for (const kind of kinds) if (wanted.includes(kind)) await movers[kind](job);
  for (const [kind, { moved, there, left }] of Object.entries(job.counts))
    await session.print(
      session.json
        ? jsonLine({ kind, moved, there, left })
        : `${kind}: ${moved} moved, ${there} there already, ${left} left\n`,
    );
  return Object.values(job.counts).some(({ left }) => left > 0) ? 1 : 0;
}
