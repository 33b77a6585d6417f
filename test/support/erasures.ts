import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AutomationsClient, graphOf } from './automations.ts';
import { knowledgeOf } from './knowledge.ts';
import type { TestApp, TestUser } from './provisioner.ts';
import type { TestServer } from './server.ts';

export type Subject = { user?: string; document?: string; source?: string; files?: boolean };

/** Plants marks in an app, and searches for them in every table and every blob. */
export function planted(server: TestServer, app: TestApp) {
  const { db, api } = server;
  const key = app.secretKey;
  const knowledge = knowledgeOf(server, { key });
  const post = async (path: string, body: object, token?: string): Promise<string> => {
    const made = await api<{ id: string }>('POST', `/api/v1${path}`, { ...(token ? { token } : { key }), body });
    if (made.status >= 300) throw new Error(`${path}: ${made.text}`);
    return made.body.id;
  };
  const createFile = (text: string, more: object = {}) =>
    post('/files', {
      ...{ filename: `${text.slice(0, 12)}.txt`, content_type: 'text/plain', ...more },
      data: Buffer.from(text).toString('base64'),
    });

  /** The tables of the database, with how often the text is in their rows. */
  async function search(text: string): Promise<[string, number][]> {
    const tables = await db<{ name: string; bytes: string[] }[]>`
      select c.table_name as name, array(select b.column_name::text from information_schema.columns b
        where b.table_schema = 'public' and b.table_name = c.table_name and b.data_type = 'bytea') as bytes
      from information_schema.tables c where c.table_schema = 'public' and c.table_type = 'BASE TABLE' order by 1`;
    const found: [string, number][] = [];
    for (const { name, bytes } of tables) {
      const inBytes = bytes.map((column) => db`or position(convert_to(${text}, 'UTF8') in t.${db(column)}) > 0`);
      const [row] = await db<[{ total: number }]>`
        select count(*)::integer as total from ${db(name)} t
        where position(lower(${text}) in lower(t::text)) > 0 ${inBytes.reduce((all, one) => db`${all} ${one}`, db``)}`;
      if (row.total > 0) found.push([name, row.total]);
    }
    return found;
  }

  return {
    createFile,

    /** Writes something of the user, with the mark, in every way that a user has. */
    async plantForUser(user: TestUser, mark: string) {
      const file = await createFile(`${mark} in a file`, { user: user.id });
      const source = await knowledge.createSource({ user: user.id, metadata: { mark }, version_retention_days: 30 });
      const document = await knowledge.push(source, `${mark} in a document`, { title: mark, metadata: { mark } });
      const change = { content: { data: `${mark} in a document that was changed` } };
      const changed = await knowledge.send<{ id: string }>('PATCH', `/knowledge_documents/${document}`, change);
      await knowledge.waitForIngestion(changed.body.id);
      const deleted = await knowledge.push(source, `${mark} in a document that is deleted`);
      await knowledge.send('DELETE', `/knowledge_documents/${deleted}`);
      const agent = await post('/agents', { name: mark, user: user.id });
      const ofAgent = await knowledge.createSource({ agent });
      await knowledge.push(ofAgent, `${mark} in a document of an agent`);
      await post('/threads', { title: mark, user: user.id });
      for (const name of ['one', 'two'])
        await api('PUT', `/api/v1/kv/${mark}-${name}`, { token: user.token, body: { value: mark } });
      await api('POST', '/api/v1/files', {
        token: user.token,
        headers: { 'idempotency-key': mark },
        body: { filename: 'x.txt', content_type: 'text/plain', data: 'eA==' },
      });
      await post(`/users/${user.id}/tokens`, { type: 'personal', name: mark });
      await db`
        insert into model_calls (app_id, id, sandbox_id, model, provider, provider_model, reserved_tokens, user_id, prompt,
          created_at)
        select app_id, gen_random_uuid(), sandbox_id, 'm', 'openai', 'm', 1, id, ${mark}, now()
        from users where id = ${user.uuid}`;
      await db`
        insert into openai_responses (app_id, id, sandbox_id, user_id, input, response, document_ids, created_at, expires_at)
        select app_id, gen_random_uuid(), sandbox_id, id, ${db.json({ mark })}, '{}', '{}', now(), now() + interval '1 day'
        from users where id = ${user.uuid}`;
      await db`
        insert into external_accounts (app_id, sandbox_id, issuer, subject, user_id, created_at)
        select app_id, sandbox_id, 'https://issuer.example.com', ${mark}, id, now() from users where id = ${user.uuid}`;
      const automations = new AutomationsClient(server, app);
      const graph = graphOf({ id: 'end', kind: 'complete', result: '{{$.mark}}' });
      const { id: automation } = await automations.createAutomation({ workflow: graph, user: user.id, name: mark });
      const run = await post(`/automations/${automation}/invoke`, { payload: { mark } }, user.token);
      await automations.waitForEnd(run);
      return { file, source, agent, automation, run };
    },

    /** The tables that have the text. */
    findRows: async (text: string) => (await search(text)).map(([name]) => name),
    countRows: async (text: string) => (await search(text)).reduce((sum, [, count]) => sum + count, 0),

    /** The files of this database's tables and indexes that have the text. */
    async findDataFiles(text: string): Promise<string[]> {
      const [place] = await db<[{ path: string }]>`
        select current_setting('data_directory') || '/base/' || oid as path from pg_database
        where datname = current_database()`;
      const found = readdirSync(place.path).filter((name) => {
        const path = join(place.path, name);
        return existsSync(path) && readFileSync(path).includes(text);
      });
      const named = found.map(async (name) => {
        const [row] = await db<[{ relation: string | null }]>`
          select pg_filenode_relation(0, ${name.split('.')[0] ?? ''}::oid)::text as relation`;
        return row.relation ?? name;
      });
      return Promise.all(named);
    },

    /** The blobs that have the text. */
    async findBlobs(text: string): Promise<string[]> {
      const directory = join(server.dataDir, 'blobs');
      return readdirSync(directory, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
        .filter((path) => readFileSync(path).includes(text));
    },
  };
}
