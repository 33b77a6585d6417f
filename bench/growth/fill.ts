import { lexicalEmbedder } from '../../src/content/embed/lexical.ts';
import { production } from '../../src/db/database.ts';
import { formatId, type IdKind, newUuid, parseId } from '../../src/lib/ids.ts';
import type { startBenchServer } from '../support.ts';

type BenchServer = Awaited<ReturnType<typeof startBenchServer>>;

/** What requests read. The ids are a sample of the rows. */
export type Filled = {
  key: string;
  user: string;
  keys: string[];
  files: string[];
  users: string[];
  runs: string[];
  documents: string[];
  source: string;
};

/** With a different model, the server would compute the vectors of all documents. */
const { model } = lexicalEmbedder();
const sampleSize = 500;
const rowsOfEachApp = 100;
/** The number of apps that are filled with one statement per table. */
const appsAtOnce = 500;

/** Grows the app of the server to this many rows in each of the large tables. */
export async function fillRows({ db, app }: BenchServer, rows: number): Promise<Filled> {
  const appId = app.app.uuid;
  const [{ have }] = await db<[{ have: number }]>`select count(*)::int as have from files where app_id = ${appId}`;
  await fill(db, [appId], have + 1, rows);
  return sampleOf(db, appId, app.secretKey);
}

/**
 * Grows the installation to this many apps, each with a hundred rows in each of the large tables. Returns a new app.
 */
export async function fillApps({ db, provision }: BenchServer, apps: number): Promise<Filled> {
  const [{ have }] = await db<[{ have: number }]>`select count(*)::int as have from apps where name = 'Grown'`;
  const { app, secretKey, developerUuid } = await provision.app();
  await db`update apps set name = 'Grown' where id = ${app.uuid}`;
  await fill(db, [app.uuid], 1, rowsOfEachApp);
  for (let made = have + 1; made < apps; made += appsAtOnce) {
    const ids = Array.from({ length: Math.min(appsAtOnce, apps - made) }, newUuid);
    await db`insert into apps (id, developer_id, name, capability_key)
      select id, ${developerUuid}, 'Grown', '' from unnest(${ids}::uuid[]) id`;
    await db`insert into sandboxes (app_id, id, name) select id, ${production}, 'Production' from unnest(${ids}::uuid[]) id`;
    await fill(db, ids, 1, rowsOfEachApp);
  }
  return sampleOf(db, app.uuid, secretKey);
}

/** Adds rows `from` to `to` to each of these apps, as the stores write them, and a hundredth as many users. */
async function fill(db: BenchServer['db'], appIds: readonly string[], from: number, to: number): Promise<void> {
  await db.begin(async (tx) => {
    // Runs without triggers, which count row by row.
    await tx`set local session_replication_role = replica`;
    const numbers = tx`unnest(${appIds}::uuid[]) app cross join generate_series(${from}::int, ${to}::int) i`;
    await tx`insert into users (app_id, id, sandbox_id, email, name)
      select app, uuidv7(), ${production}, 'person-' || i || '@example.com', 'Person Number ' || i
      from unnest(${appIds}::uuid[]) app, generate_series(${Math.ceil(from / 100)}::int, ${Math.ceil(to / 100)}::int) i
      on conflict do nothing`;
    await tx`insert into files (app_id, id, sandbox_id, filename, content_type, size, checksum, blob_key, created_at)
      select app, uuidv7(), ${production}, 'report-' || i || '.txt', 'text/plain', 4, sha256('Text.'), 'grown/' || i,
        now() - (${to}::int - i) * interval '1 millisecond'
      from ${numbers}`;
    await tx`insert into kv_entries (app_id, sandbox_id, user_id, key, id, value, created_at)
      select app, ${production}, u.id, 'key-' || i, uuidv7(), repeat('v', 100),
        now() - (${to}::int - i) * interval '1 millisecond'
      from ${numbers}
      join (select app_id, count(*) as users from users where app_id = any(${appIds}::uuid[]) group by app_id) c
        on c.app_id = app
      join (select app_id, id, row_number() over (partition by app_id order by id) as n
        from users where app_id = any(${appIds}::uuid[])) u
        on u.app_id = app and u.n = 1 + case when i <= 100 then 0 else i % c.users end`;
    await tx`delete from kv_counters where app_id = any(${appIds}::uuid[])`;
    await tx`insert into kv_counters (app_id, sandbox_id, part, entries)
      select app_id, ${production}, 0, count(*) from kv_entries where app_id = any(${appIds}::uuid[]) group by app_id`;
    await tx`insert into automations (app_id, id, sandbox_id, name, type)
      select app, uuidv7(), ${production}, 'Grown', 'invoked' from unnest(${appIds}::uuid[]) app
      where not exists (select 1 from automations a where a.app_id = app)`;
    await tx`insert into automation_runs (app_id, id, sandbox_id, automation_id, type, status, payload, created_at)
      select app, uuidv7(), ${production}, a.id, 'invoked', 'completed', '{}',
        now() - (${to}::int - i) * interval '1 millisecond'
      from ${numbers} join automations a on a.app_id = app`;
    await tx`insert into knowledge_sources (app_id, id, sandbox_id, type)
      select app, uuidv7(), ${production}, 'knowledge/documents' from unnest(${appIds}::uuid[]) app
      where not exists (select 1 from knowledge_sources s where s.app_id = app)`;
    await tx`insert into knowledge_documents (app_id, id, sandbox_id, source_id, title, bytes_hash, content_hash,
        total_lines, total_size, first_ordinal, chunk_count, word_count, embedding_model, created_at)
      select app, uuidv7(), ${production}, s.id, 'Document ' || i, sha256('Text.'), sha256('Text.'), 1, 5, 0, 0, 1, ${model},
        now() - (${to}::int - i) * interval '1 millisecond'
      from ${numbers} join knowledge_sources s on s.app_id = app`;
    await tx`insert into audit_entries (app_id, id, sandbox_id, at, actor_kind, actor_id, credential, action, method,
        route, status, request_id)
      select app, uuidv7(), ${production}, now() - (${to}::int - i) * interval '1 millisecond', 'secret_key', app, 'k',
        'createFile', 'POST', '/api/v1/files', 201, 'req'
      from ${numbers}`;
  });
}

async function sampleOf(db: BenchServer['db'], appId: string, key: string): Promise<Filled> {
  const sample = async (kind: IdKind, table: string) => {
    const found = await db<{ id: string }[]>`
      select id from ${db(table)} where app_id = ${appId} order by id limit ${sampleSize}`;
    return found.map(({ id }) => formatId(kind, id));
  };
  const users = await sample('user', 'users');
  const [user = ''] = users;
  const entries = await db<{ key: string }[]>`
    select key from kv_entries where app_id = ${appId} and user_id = ${parseId('user', user) ?? ''} limit ${sampleSize}`;
  return {
    ...{ key, user, users, keys: entries.map(({ key: name }) => name) },
    files: await sample('file', 'files'),
    runs: await sample('automationRun', 'automation_runs'),
    documents: await sample('document', 'knowledge_documents'),
    source: (await sample('source', 'knowledge_sources'))[0] ?? '',
  };
}
