import { lexicalEmbedder } from '../../src/content/embed/lexical.ts';
import { production } from '../../src/db/database.ts';
import { formatId, type IdKind, newUuid, parseId } from '../../src/lib/ids.ts';
import type { TestApp } from './provisioner.ts';
import type { TestServer } from './server.ts';

/** The ids in the addresses of a large app's pages. */
type LargeApp = { source: string; automation: string; extraction: string; reader: { email: string; password: string } };

const topics = ['mooring', 'pilotage', 'customs', 'weather', 'dredging'];
const people = [
  'Ada Lind',
  'Grace Okafor',
  'Jean-Baptiste de la Roche-Guyon',
  'Møller',
  'Nguyễn Thị Minh Khai',
  '李小龍',
];
const office = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
/** Only types without small pictures, which would need contents. */
const types: [type: string, ending: string][] = [
  ['text/csv; charset=utf-8', 'csv'],
  ['text/markdown; charset=utf-8', 'md'],
  ['video/mp4', 'mp4'],
  ['application/json', 'json'],
  [office, 'docx'],
];
const states = ['completed', 'completed', 'completed', 'failed', 'running', 'cancelled', 'pending'];

/**
 * Fills an app by SQL with this many files, documents, runs, audit entries, outputs of one extraction and entries of
 * one user. The rows are as the stores write them, but files have no contents. The number of users is separate,
 * because the index for their search takes a millisecond for each.
 */
export async function fillApp(
  server: TestServer,
  app: TestApp,
  { rows, users }: { rows: number; users: number },
): Promise<LargeApp> {
  const { db, api } = server;
  const appId = app.app.uuid;
  const orgs = await Promise.all(
    topics.map((name) => create('org', '/orgs', { name: `The ${name} authority of the outer harbour` })),
  );
  const password = 'tide and time';
  const reader = await create('user', '/users', { email: 'ada@harbour.example', name: 'Ada Lind', password });

  // Rows with the same number share an id: every table has its own row with that id.
  const ids = Array.from({ length: rows }, () => newUuid());
  await db`create unlogged table sample (number integer, id uuid, file text, org uuid, topic text, at timestamptz(3))`;
  await db`
    insert into sample
    select ordinal - 1, id, file, (${orgs.map(({ uuid }) => uuid)}::uuid[])[1 + (ordinal - 1) % ${topics.length}],
      (${topics}::text[])[1 + (ordinal - 1) % ${topics.length}], now() - (${rows} - ordinal + 1) * interval '61 seconds'
    from unnest(${ids}::uuid[], ${ids.map((id) => formatId('file', id))}::text[]) with ordinality t(id, file, ordinal)`;
  await db`
    insert into users (app_id, id, sandbox_id, email, name, org_id, org_role, created_at, updated_at)
    select ${appId}, id, ${production}, topic || '.' || number || '@a-rather-long-domain-of-the-harbour.example',
      (${people}::text[])[1 + number % ${people.length}], org, 'member', at, at
    from sample where number < ${users}`;

  const [contentTypes, endings] = [types.map(([type]) => type), types.map(([, ending]) => ending)];
  await db`
    insert into files (app_id, id, sandbox_id, filename, content_type, size, checksum, blob_key, org_id, created_at, updated_at)
    select ${appId}, id, ${production}, name, (${contentTypes}::text[])[1 + number % ${types.length}],
      number * 7919::bigint % 40000000, sha256(name::bytea), id::text, org, at, at
    from sample, concat(topic, '/2026/report-', number, '-with-a-long-name-that-nobody-has-shortened.',
      (${endings}::text[])[1 + number % ${types.length}]) name`;

  const source = await create('source', '/knowledge_sources', {
    type: 'knowledge/documents',
    org: orgs[0]?.id,
    metadata: { name: 'Everything that the harbour office has ever written down' },
  });
  // Without a model, the server would embed each of them.
  await db`
    insert into knowledge_documents (app_id, id, sandbox_id, source_id, title, bytes_hash, content_hash, total_lines,
      total_size, first_ordinal, chunk_count, word_count, embedding_model, created_at, updated_at)
    select ${appId}, id, ${production}, ${source.uuid}, title, sha256(title::bytea), sha256(title::bytea), lines, lines * 61, 0, 0,
      lines * 9, ${lexicalEmbedder().model}, at, at
    from sample, concat(topic, ' handbook, part ', number, ': what to do when the tide is out') title,
      mod(number * 31, 9000) lines`;

  const nodes = [{ id: 'done', kind: 'complete', result: 1 }];
  const workflow = { kind: 'WorkflowGraph', version: 1, start_node: 'done', nodes };
  const automation = await create('automation', '/automations', {
    name: 'Assign a berth to each ship',
    type: 'invoked',
    workflow,
  });
  const error = JSON.stringify({ code: 'expression_failed', message: 'The scales of the outer quay are broken.' });
  await db`
    insert into automation_runs (app_id, id, sandbox_id, automation_id, graph_version, type, status, payload, error,
      started_at, completed_at, created_at, updated_at)
    select ${appId}, id, ${production}, ${automation.uuid}, 1, 'invoked', state, '{}', case state when 'failed' then ${error}::json end,
      case state when 'pending' then null else at end,
      case when state in ('pending', 'running') then null else at + interval '1.5 seconds' end, at, at
    from (select *, (${states}::text[])[1 + number % ${states.length}] as state from sample) t`;

  const first = await create('file', '/files', {
    ...{ filename: 'handbook/0.md', content_type: 'text/markdown', org: orgs[0]?.id },
    data: Buffer.from('# The handbook\n\nWhat to do when the tide is out.\n').toString('base64'),
  });
  const extraction = { uuid: newUuid() };
  await db`
    insert into extractions (app_id, id, sandbox_id, kind, state, destination_kind, url, max_pages, options, discovered,
      done, failed, output_count, output_bytes)
    values (${appId}, ${extraction.uuid}, ${production}, 'site', 'done', 'storage', 'https://harbour.example/handbook/', ${rows},
      ${JSON.stringify(siteOptions)}::jsonb, ${rows}, ${rows}, 0, ${rows}, ${rows * 4_000})`;
  await db`
    insert into extraction_outputs (app_id, id, extraction_id, ordinal, name, state, source_url, title, file_id)
    select ${appId}, id, ${extraction.uuid}, number, number || '.md', 'done', 'https://harbour.example/handbook/' || number,
      'Chapter ' || number || ' of the handbook', case number when 0 then ${first.uuid} else id end
    from sample`;

  await db`
    insert into kv_entries (app_id, user_id, key, sandbox_id, id, value, created_at, updated_at)
    select ${appId}, ${reader.uuid}, topic || '/ships/' || number, ${production}, id,
      format('{"ship":"Alba %s","metres":%s,"berth":"B%s"}', number, number % 300, number % 40), at, at
    from sample`;

  await db`
    insert into audit_entries (app_id, id, sandbox_id, at, actor_kind, actor_id, credential, action, method, route, resource,
      status, request_id, address)
    select ${appId}, id, ${production}, at, 'developer', ${app.developerUuid}, ${formatId('developer', app.developerUuid)}, 'createFile', 'POST',
      '/api/v1/files', file, case when number % 9 = 0 then 422 else 201 end, 'req', '2001:db8:85a3::8a2e:370:7334'
    from sample`;
  for (const name of topics) {
    const org = orgs[0]?.id;
    const title = `The ${name} desk of the harbour office, first floor, second door on the left`;
    const agent = await create('agent', '/agents', { name: title, lookup_key: `${name}-desk`, org });
    await create('team', '/teams', { name: title, org, description: title });
    await create('thread', '/threads', { title, agent: agent.id });
    await create('installation', '/installations', { agent: agent.id, kind: 'thread/messages' });
    await create('webhook', '/webhooks', {
      url: `https://crm.harbour.example/${name}/hooks`,
      events: ['*'],
      description: title,
    });
    await create('sandbox', '/sandboxes', { name: title });
    await create('key', '/keys', { type: 'secret', name: title });
    await api('PUT', `/api/v1/secrets/${name.toUpperCase()}_TOKEN`, { key: app.secretKey, body: { value: name } });
  }
  return {
    source: source.id,
    automation: automation.id,
    extraction: formatId('extraction', extraction.uuid),
    reader: { email: 'ada@harbour.example', password },
  };

  async function create(kind: IdKind, path: string, body: unknown): Promise<{ id: string; uuid: string }> {
    const made = await api<{ id: string }>('POST', `/api/v1${path}`, { key: app.secretKey, body });
    const uuid = made.status === 201 ? parseId(kind, made.body.id) : undefined;
    if (uuid === undefined) throw new Error(made.text);
    return { id: made.body.id, uuid };
  }
}

const siteOptions = {
  ...{ mode: 'site', startUrl: 'https://harbour.example/handbook/', includePaths: [], excludePaths: [] },
  ...{ allowSubdomains: false, ignoreRobots: false, sitemap: 'include' },
};
