import { openDatabase } from '../../src/db/database.ts';
import { installPackages } from './install.ts';
import type { OwnServer } from './own-server.ts';
import { callEach, type RunsPeer } from './row.ts';

/** The parts of the libraries that are used. */
type Handle = { getResult(): Promise<number> };
type Workflow = (n: number) => Promise<number>;
type Dbos = {
  setConfig(config: object): void;
  launch(): Promise<void>;
  shutdown(): Promise<void>;
  registerWorkflow(run: Workflow, options: { name: string }): Workflow;
  startWorkflow(workflow: Workflow): (n: number) => Promise<Handle>;
  runStep(run: () => Promise<void>, options: { name: string }): Promise<void>;
};
type Sql = (parts: TemplateStringsArray, ...values: unknown[]) => Promise<unknown>;
type Write = (n: number, step: number) => Promise<void>;
type DataSource = { client: Sql; registerTransaction(run: Write, options: { name: string }): Write };
type DataSourceClass = {
  new (name: string, options: object): DataSource;
  initializeDBOSSchema(options: object): Promise<void>;
};

/**
 * A workflow of three steps that each write a row, in this process. There are two rows, because no published data source
 * works with the newest version: it writes in plain steps, which may run twice and so insert what is missing.
 */
export const startDbos = [
  (server: OwnServer) => start(server, 'steps', ['@dbos-inc/dbos-sdk@5.3.0']),
  (server: OwnServer) =>
    start(server, 'transactions', ['@dbos-inc/dbos-sdk@4.24.16', '@dbos-inc/postgres-datasource@4.24.16']),
];

const connections = 10;

async function start({ address }: OwnServer, kind: 'steps' | 'transactions', names: string[]): Promise<RunsPeer> {
  const packages = installPackages(`dbos-${kind}`, names);
  const { DBOS } = await packages.load<{ DBOS: Dbos }>('@dbos-inc/dbos-sdk');
  const database = `dbos_${kind}`;
  const admin = openDatabase(address, { poolSize: 1, applicationName: 'bench' });
  await admin`create database ${admin(database)}`;
  await admin.end();
  const db = openDatabase({ ...address, database }, { poolSize: connections, applicationName: 'bench' });
  await db`create table written (n integer, step integer, value text not null, primary key (n, step))`;

  const { host, port, username } = address;
  const insert: Write = async (n, step) =>
    void (await db`insert into written (n, step, value) values (${n}, ${step}, 'seen') on conflict do nothing`);
  const writeInStep: Write = (n, step) => DBOS.runStep(() => insert(n, step), { name: 'write' });
  const write = kind === 'steps' ? writeInStep : await registerTransaction();
  async function registerTransaction(): Promise<Write> {
    const { PostgresDataSource } = await packages.load<{ PostgresDataSource: DataSourceClass }>(
      '@dbos-inc/postgres-datasource',
    );
    const options = { path: `${host}/.s.PGSQL.${port}`, user: username, database, max: connections };
    await PostgresDataSource.initializeDBOSSchema({ ...options, onnotice: () => {} });
    const source = new PostgresDataSource('bench', options);
    const insertInTransaction: Write = async (n, step) =>
      void (await source.client`insert into written (n, step, value) values (${n}, ${step}, 'seen')`);
    return source.registerTransaction(insertInTransaction, { name: 'write' });
  }
  const workflow = DBOS.registerWorkflow(
    async (n) => {
      for (const step of [1, 2, 3]) await write(n, step);
      return n;
    },
    { name: 'bench' },
  );
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: `postgresql://${username}@localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`,
    systemDatabasePoolSize: connections,
    logLevel: 'error',
    runAdminServer: false,
  });
  await DBOS.launch();
  let started = 0;
  return {
    program: `DBOS, a workflow of three ${kind}`,
    version: packages.version('@dbos-inc/dbos-sdk'),
    guarantees:
      kind === 'steps'
        ? 'a checkpoint of each step, fsynced; a step may run twice; no tenants; a library, started in process'
        : 'each step and its row in one fsynced commit; no tenants; a library, started in process',
    async runMany(count) {
      const handles: Handle[] = [];
      await callEach(16, count, async () => handles.push(await DBOS.startWorkflow(workflow)(started++)));
      await Promise.all(handles.map((handle) => handle.getResult()));
    },
    runOne: async () => void (await (await DBOS.startWorkflow(workflow)(started++)).getResult()),
    async check() {
      const [row] = await db<[{ count: number }]>`select count(*) from written`;
      if (row.count !== 3 * started) throw new Error(`There are ${row.count} rows of ${started} runs.`);
    },
    async close() {
      await DBOS.shutdown();
      await db.end();
    },
  };
}
