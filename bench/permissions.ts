/**
 * What the readers of documents cost a search: one source without restrictions, and the same documents in another one,
 * each with one of many groups as its reader. Users are members of enough groups to see 1, 50 and 99 % of the chunks.
 * Each query is sent to both sources in turn, so that only the ratio of the two times counts.
 *
 *   node bench/permissions.ts [--documents 1000] [--groups 1000] [--rounds 60]
 */
import { parseArgs } from 'node:util';
import { formatId } from '../src/lib/ids.ts';
import { startBenchServer } from './support.ts';

const { values } = parseArgs({
  options: { documents: { type: 'string' }, groups: { type: 'string' }, rounds: { type: 'string' } },
});
const documents = Number(values.documents ?? 1_000);
const groups = Number(values.groups ?? 1_000);
const rounds = Number(values.rounds ?? 60);
const passagesPerDocument = 10;
const documentsPerBatch = 50;
const words = Array.from({ length: 4_000 }, (_word, i) => `w${((i * 7_919) % 4_000).toString(36)}`);

/** Words with frequencies that fall as in a language; the same text for the same number. */
function passage(number: number): string {
  let state = number * 2_654_435_761 + 1;
  const next = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  return Array.from({ length: 90 }, () => words[Math.floor(next() ** 3 * words.length)]).join(' ');
}

const textOf = (document: number) =>
  Array.from(
    { length: passagesPerDocument },
    (_passage, i) => `# Part ${i}\n\n${passage(document * passagesPerDocument + i)}\n\n`,
  ).join('');

// Restricted documents are not learned from, so neither source has a model.
const server = await startBenchServer({ QUARRY_LEARN_MEMORY_MB: '0' });
const { app, baseUrl, db, provision } = server;

async function fill(source: string): Promise<void> {
  for (let from = 0; from < documents; from += documentsPerBatch) {
    const items = Array.from({ length: Math.min(documentsPerBatch, documents - from) }, (_item, i) => ({
      content: { data: textOf(from + i) },
    }));
    await server.finished(await server.post(`/api/v1/knowledge_sources/${source}/ingest/batch`, { items }));
  }
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
    update knowledge_indexes set acl_version = ${documents}, restricted_chunks = chunk_count, languages = '{}'
    where source_id = ${id}`;
  await db`analyze`;
}

async function createReader(source: string, percent: number): Promise<string> {
  const [row] = await db<[{ orgId: string }]>`
    select org_id from knowledge_sources where format_id('cso', id) = ${source}`;
  const user = await provision.user(app, { org: { id: formatId('org', row.orgId), uuid: row.orgId } });
  await db`
    insert into group_members (app_id, group_id, user_id)
    select app_id, id, ${user.uuid}::uuid from groups
    where namespace = 'bench' and external_id::int <= ${Math.ceil((groups * percent) / 100)}`;
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

try {
  const [open, restricted] = [await server.makeSource(), await server.makeSource()];
  await fill(open);
  await fill(restricted);
  await restrict(restricted);
  console.log(`${documents} documents, ${documents * passagesPerDocument} passages, ${groups} groups`);
  for (const percent of [1, 50, 99]) {
    const token = await createReader(open, percent);
    const times: Record<string, number[]> = { [open]: [], [restricted]: [] };
    for (let round = -5; round < rounds; round++) {
      const query = passage(1_000_000 + round)
        .split(' ')
        .slice(0, 4)
        .join(' ');
      for (const source of round % 2 === 0 ? [open, restricted] : [restricted, open]) {
        const begin = performance.now();
        await search(source, query, token);
        if (round >= 0) times[source]?.push(performance.now() - begin);
      }
    }
    const [one = [], other = []] = [open, restricted].map((source) => times[source]?.sort((a, b) => a - b));
    const ratio = (share: number) => (percentile(other, share) / percentile(one, share)).toFixed(2);
    console.log(
      `${String(percent).padStart(3)} % visible: median ${ratio(0.5)}, p95 ${ratio(0.95)} times the open source`,
    );
  }
} finally {
  await server.close();
}
