import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

/*
 * Copies the data of one app from one server to another through the public API, with a secret key for each. Either
 * server may be a hosted service; docs/migrating.md lists what is copied and what cannot be.
 *
 *   FROM_KEY=sk_… TO_KEY=sk_… node scripts/move.ts --from https://api.example.com --to http://127.0.0.1:8080 \
 *     [--only users,files,kv] [--map moved.json]
 *
 * The map records which id became which. It is written after each resource, so an interrupted run can be repeated, and
 * a later run copies what is new. Nothing is deleted or changed on the source server.
 */

type Thing = Record<string, unknown> & { id: string };
type Page = { data: Thing[]; has_next?: boolean };

const kinds = ['orgs', 'users', 'teams', 'agents', 'files', 'kv', 'sources', 'automations'] as const;
type Kind = (typeof kinds)[number];

const { values: options } = parseArgs({
  options: {
    from: { type: 'string' },
    to: { type: 'string' },
    only: { type: 'string', default: kinds.join(',') },
    map: { type: 'string', default: 'moved.json' },
  },
});
const fromKey = process.env.FROM_KEY;
const toKey = process.env.TO_KEY;
if (!options.from || !options.to || !fromKey || !toKey) {
  process.stderr.write('Needs --from URL, --to URL, and the secret keys in FROM_KEY and TO_KEY.\n');
  process.exit(2);
}

/** One server, as visible to a secret key of one app. */
class Server {
  readonly #base: string;
  readonly #key: string;

  constructor(base: string, key: string) {
    this.#base = `${base.replace(/\/+$/, '')}/api/v1`;
    this.#key = key;
  }

  /** The JSON of the response. Retries a 429 or 503 a few times, after the requested wait; otherwise throws. */
  async call<T>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const raw = body instanceof Uint8Array;
      const response = await fetch(`${this.#base}${path}`, {
        method,
        headers: { 'x-api-key': this.#key, 'content-type': 'application/json', ...headers },
        ...(body === undefined ? {} : { body: raw ? new Uint8Array(body) : JSON.stringify(body) }),
      });
      if (response.ok) return (response.status === 204 ? undefined : await response.json()) as T;
      const text = await response.text();
      if (![429, 503].includes(response.status) || attempt > attemptsMax)
        throw new Error(`${method} ${path}: ${response.status} ${text}`);
      const seconds = Number(response.headers.get('retry-after')) || 1;
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
    }
  }

  async *list(path: string, query: Record<string, string> = {}): AsyncGenerator<Thing> {
    for (let page = 1; ; page++) {
      const search = new URLSearchParams({ ...query, page: String(page), page_size: '100' });
      const { data, has_next } = await this.call<Page>('GET', `${path}?${search}`);
      yield* data;
      if (!has_next) return;
    }
  }
}

const attemptsMax = 8;
const from = new Server(options.from, fromKey);
const to = new Server(options.to, toKey);

/** Old ids and their new ids, kept in a file. */
class Moved {
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

const moved = new Moved(options.map);
const counts: Record<string, { moved: number; there: number; left: number }> = {};

/** Creates one resource on the target unless an earlier run did, and records it. Reports and skips what is refused. */
async function move(kind: string, old: string, name: string, make: () => Promise<string>): Promise<void> {
  counts[kind] ??= { moved: 0, there: 0, left: 0 };
  if (moved.find(old) !== undefined) {
    counts[kind].there += 1;
    return;
  }
  try {
    moved.keep(old, await make());
    counts[kind].moved += 1;
  } catch (error) {
    counts[kind].left += 1;
    process.stderr.write(`left ${kind} ${old} (${name}): ${error instanceof Error ? error.message : String(error)}\n`);
  }
}

/** The members of a resource, with new ids in those named `reference`. */
function pick(thing: Thing, members: string[], references: string[] = []): Record<string, unknown> {
  const picked: Record<string, unknown> = {};
  for (const name of members) if (thing[name] !== undefined && thing[name] !== null) picked[name] = thing[name];
  for (const name of references) {
    if (thing[name] === undefined || thing[name] === null) continue;
    const now = moved.find(thing[name]);
    if (now === undefined) throw new Error(`its ${name} ${String(thing[name])} was not moved`);
    picked[name] = now;
  }
  return picked;
}

const create = async (path: string, body: unknown) => (await to.call<Thing>('POST', path, body)).id;

const movers: Record<Kind, () => Promise<void>> = {
  async orgs() {
    for await (const org of from.list('/orgs'))
      await move('orgs', org.id, String(org.name), () => create('/orgs', pick(org, ['name', 'slug'])));
  },

  async users() {
    // Passwords cannot be read: users set new ones, or sign in through your own server's tokens.
    const there = new Map<unknown, string>();
    for await (const user of to.list('/users')) if (user.email) there.set(user.email, user.id);
    for await (const user of from.list('/users'))
      await move('users', user.id, String(user.email), async () => {
        const same = there.get(user.email);
        const members = ['email', 'name', 'org_role', 'is_system_user', 'metadata'];
        return same ?? create('/users', pick(user, members, ['org']));
      });
  },

  async teams() {
    for await (const team of from.list('/teams'))
      await move('teams', team.id, String(team.name), async () => {
        const id = await create('/teams', pick(team, ['name', 'description', 'metadata'], ['org']));
        for await (const member of from.list(`/teams/${team.id}/members`)) {
          const user = moved.find((member.user as Thing | undefined)?.id);
          if (user !== undefined) await to.call('POST', `/teams/${id}/members`, { user, role: member.role });
        }
        return id;
      });
  },

  async agents() {
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
    for await (const agent of from.list('/agents'))
      await move('agents', agent.id, String(agent.name), () =>
        create('/agents', {
          ...pick(agent, members),
          // An agent's org is its owner's, if it has one.
          ...pick(agent, [], agent.team ? ['team'] : agent.user ? ['user'] : ['org']),
          ...(agent.default_model ? { model: agent.default_model } : {}),
        }),
      );
  },

  async files() {
    for await (const file of from.list('/files'))
      await move('files', file.id, String(file.filename), async () => {
        const owners = pick(file, [], file.agent ? ['agent', 'team', 'user'] : ['org', 'team', 'user']);
        const { url } = await from.call<{ url: string }>('GET', `/files/${file.id}`);
        const bytes = new Uint8Array(await (await fetch(url)).arrayBuffer());
        const checksum = createHash('sha256').update(bytes).digest('hex');
        if (file.checksum !== undefined && checksum !== file.checksum)
          throw new Error('its bytes are not its checksum');
        const query = new URLSearchParams(owners as Record<string, string>);
        if (file.shared) query.set('share', 'true');
        const made = await to.call<Thing>('POST', `/files/uploads?${query}`, bytes, {
          'content-type': String(file.content_type),
          'x-filename': encodeURIComponent(String(file.filename)),
        });
        if (made.checksum !== checksum) throw new Error('it arrived with other bytes');
        const grants = grantsOf(file);
        if (grants.length > 0 || Object.keys((file.provider_metadata as object) ?? {}).length > 0)
          await to.call('PATCH', `/files/${made.id}`, {
            ...pick(file, ['provider_metadata']),
            ...(grants.length > 0 ? { acl: { grants } } : {}),
          });
        return made.id;
      });
  },

  async kv() {
    for await (const entry of from.list('/kv')) {
      const { user, key } = entry as unknown as { user: string; key: string };
      await move('kv', `${user}/${key}`, key, async () => {
        const path = `/kv/${encodeURIComponent(key)}?user=`;
        const { value } = await from.call<{ value: string }>('GET', `${path}${user}`);
        await to.call('PUT', `/kv/${encodeURIComponent(key)}`, { value, user: pick(entry, [], ['user']).user });
        return key;
      });
    }
  },

  async sources() {
    for await (const source of from.list('/knowledge_sources')) {
      await move('sources', source.id, String(source.type), () => {
        const owner = ['agent', 'team', 'user', 'org'].find(
          (name) => source[name] !== null && source[name] !== undefined,
        );
        const payload = { ...((source.payload as Record<string, unknown>) ?? {}) };
        for (const name of ['file', 'file_id'])
          if (payload[name] !== undefined) payload[name] = moved.find(payload[name]) ?? payload[name];
        return create('/knowledge_sources', {
          ...pick(source, ['type', 'metadata', 'state'], owner === undefined ? [] : [owner]),
          payload,
        });
      });
      const target = moved.find(source.id);
      if (target === undefined) continue;
      // Pulled sources are pulled again; pushed documents are pushed again, as the text that was extracted from them.
      if (source.type === 'knowledge/documents') await moveDocuments(source.id, target);
      else if (pulled.has(String(source.type)))
        await move('pulls', `${source.id}/pull`, String(source.type), () =>
          create(`/knowledge_sources/${target}/ingest`, { pull: true }),
        );
    }
  },

  async automations() {
    const members = ['name', 'lookup_key', 'description', 'type', 'trigger', 'filter', 'schedule', 'timezone'];
    members.push('workflow', 'input_schema', 'invoke_auth', 'max_concurrent_runs', 'timeout_seconds', 'metadata');
    // Created as drafts, so that nothing runs on both sides: activate each when you are ready.
    for await (const automation of from.list('/automations'))
      await move('automations', automation.id, String(automation.name), () =>
        create('/automations', {
          ...pick(automation, members, ['run_as_user', 'run_as_agent']),
          ...pick(automation, [], automation.team ? ['team'] : automation.user ? ['user'] : ['org']),
        }),
      );
  },
};

const pulled = new Set(['scrape/site', 'web/link', 'file/document']);

async function moveDocuments(source: string, target: string): Promise<void> {
  for await (const document of from.list('/knowledge_documents', { source }))
    await move('documents', document.id, String(document.title), async () => {
      const { content } = await from.call<{ content: string }>('GET', `/knowledge_documents/${document.id}/content`);
      const type = String(document.content_type ?? 'text/markdown');
      const content_type = type.startsWith('text/') ? type : 'text/markdown';
      return create(`/knowledge_sources/${target}/ingest`, {
        content: { data: content, content_type },
        on_active: 'queue',
        ...pick(document, ['title', 'metadata']),
      });
    });
}

/** Only grants to principals that were moved; others would be refused. */
function grantsOf(file: Thing): Record<string, unknown>[] {
  const { grants = [] } = (file.acl as { grants?: Record<string, unknown>[] } | undefined) ?? {};
  return grants.flatMap((grant) => {
    const principal = moved.find(grant.principal);
    if (principal !== undefined) return [{ ...grant, principal }];
    return ['everyone', 'org_role'].includes(String(grant.principal_type)) ? [grant] : [];
  });
}

const wanted = options.only.split(',');
const unknown = wanted.filter((kind) => !(kinds as readonly string[]).includes(kind));
if (unknown.length > 0) {
  process.stderr.write(`Unknown: ${unknown.join(', ')}. Known are ${kinds.join(', ')}.\n`);
  process.exit(2);
}
for (const kind of kinds) if (wanted.includes(kind)) await movers[kind]();
for (const [kind, { moved: count, there, left }] of Object.entries(counts))
  process.stdout.write(`${kind}: ${count} moved, ${there} there already, ${left} left\n`);
process.exitCode = Object.values(counts).some(({ left }) => left > 0) ? 1 : 0;
