/**
 * What the readers of documents cost a search: one source without restrictions, and the same documents in another one,
 * each with one of many groups as its reader. Users are members of enough groups to see 1, 50 and 99 % of the chunks.
 * Each query is sent to both sources in turn, so that only the ratio of the two times counts. Both are filled straight
 * into the tables of the index, and neither has a learned model: restricted documents are not learned from.
 *
 *   node bench/permissions.ts [--chunks 100000] [--groups 10000] [--searches 100] [--cache MB] [--directory DIR]
 *
 * With `--directory`, the filled database stays there, and the next run measures it without filling it again.
 */
import { parseArgs } from 'node:util';
import { formatId } from '../src/lib/ids.ts';
import { drawQuery, seeded } from './search/corpus.ts';
import { fillSource } from './search/fill.ts';
import { startBenchServer } from './support.ts';

const { values } = parseArgs({
  options: {
    chunks: { type: 'string', default: '100000' },
    groups: { type: 'string', default: '10000' },
    searches: { type: 'string', default: '100' },
    cache: { type: 'string' },
    directory: { type: 'string' },
  },
});
const chunks = Number(values.chunks);
const groups = Number(values.groups);
const searches = Number(values.searches);
const warmUps = 5;

const cache = values.cache === undefined ? {} : { QUARRY_SEARCH_CACHE_MB: values.cache };
const server = await startBenchServer({ QUARRY_LEARN_MEMORY_MB: '0', ...cache }, values.directory);
const { app, baseUrl, db, provision } = server;

async function fill(): Promise<string> {
  const source = await server.makeSource();
  const [row] = await db<[{ id: string }]>`select id from knowledge_sources where format_id('cso', id) = ${source}`;
  await fillSource(db, { appId: app.app.uuid, sourceId: row.id }, chunks, true);
  return source;
}

/** Gives each document of a source one of the groups, by statements, because there are many. */
async function restrict(source: string): Promise<void> {
  const [row] = await db<[{ appId: string; sandboxId: string; id: string }]>`
    select app_id, sandbox_id, id from knowledge_sources where format_id('cso', id) = ${source}`;
  const { appId, sandboxId, id } = row;
  await db`
    insert into groups (app_id, sandbox_id, id, namespace, external_id)
    select ${appId}::uuid, ${sandboxId}::uuid, gen_random_uuid(), 'bench', n::text from generate_series(1, ${groups}) n`;
  await db`
    insert into knowledge_acls (app_id, sandbox_id, id, digest)
    select app_id, sandbox_id, id, sha256(external_id::bytea) from groups where namespace = 'bench'`;
  await db`
    insert into knowledge_acl_principals (app_id, acl_id, principal_type, principal_id)
    select app_id, id, 'group', id from groups where namespace = 'bench'`;
  await db`
    update knowledge_documents d set acl_version = n.place, acl_id = g.id
    from (select id, row_number() over (order by id) as place from knowledge_documents where source_id = ${id}) n
    join groups g on g.namespace = 'bench' and g.external_id = (1 + (n.place * 7919) % ${groups})::text
    where d.app_id = ${appId} and d.id = n.id`;
  await db`
    update knowledge_indexes set restricted_chunks = chunk_count, languages = '{}',
      acl_version = (select count(*) from knowledge_documents where source_id = ${id})
    where source_id = ${id}`;
  await db`vacuum analyze`;
}

async function createReader(source: string, percent: number): Promise<string> {
  const [row] = await db<[{ orgId: string }]>`
    select org_id from knowledge_sources where format_id('cso', id) = ${source}`;
  const user = await provision.user(app, { org: { id: formatId('org', row.orgId), uuid: row.orgId } });
  await db`
    insert into group_members (app_id, group_id, user_id)
    select app_id, id, ${user.uuid}::uuid from groups
    where namespace = 'bench' and external_id::int <= ${Math.ceil((groups * percent) / 100)}`;
  await db`analyze group_members`;
  return user.token;
}

async function search(source: string, query: string, token: string): Promise<void> {
  const response = await fetch(`${baseUrl}/api/v1/knowledge_sources/${source}/search`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  if (!response.ok) throw new Error(`The search returns ${response.status}: ${await response.text()}`);
  await response.arrayBuffer();
}

const percentile = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;

/** The source that is open, and the one with restricted documents. */
async function findSources(): Promise<string[]> {
  const rows = await db<{ id: string }[]>`select format_id('cso', id) as id from knowledge_sources order by id`;
  return rows.map(({ id }) => id);
}

async function fillBoth(): Promise<void> {
  await fill();
  await restrict(await fill());
}

try {
  if ((await findSources()).length === 0) await fillBoth();
  const [open = '', restricted = ''] = await findSources();
  console.log(
    `${chunks} chunks, ${groups} groups; searches of one who sees a share of them beside one without restrictions`,
  );
  for (const percent of [1, 50, 99]) {
    const token = await createReader(open, percent);
    // A query that was asked before finds its postings and vectors in memory, but only those of chunks that were visible
    // then. So each share has its own queries, and each query is asked twice.
    for (const pass of ['new', 'repeated']) {
      const times: Record<string, number[]> = { [open]: [], [restricted]: [] };
      const random = seeded(99 + percent);
      for (let round = -warmUps; round < searches; round++) {
        const query = drawQuery(chunks, random);
        for (const source of round % 2 === 0 ? [open, restricted] : [restricted, open]) {
          const begin = performance.now();
          await search(source, query, token);
          if (round >= 0) times[source]?.push(performance.now() - begin);
        }
      }
      const [one = [], other = []] = [open, restricted].map((source) => times[source]?.sort((a, b) => a - b));
      const compare = (share: number) => {
        const [before, after] = [percentile(one, share), percentile(other, share)];
        return `${(after / before).toFixed(2)} (${before.toFixed(0)} → ${after.toFixed(0)} ms)`;
      };
      console.log(`${String(percent).padStart(3)} %, ${pass}: median ${compare(0.5)}, p95 ${compare(0.95)}`);
    }
  }
  console.log(`memory of the server's process ${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MiB`);
} finally {
  await server.close();
}
