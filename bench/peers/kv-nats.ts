import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installPackages, unpackDebian } from './install.ts';
import { startProcess } from './process.ts';
import type { KvPeer } from './row.ts';

/** The parts of the clients that are used. */
type Entry = { string(): string; revision: number };
type Bucket = {
  get(key: string): Promise<Entry | null>;
  put(key: string, value: string): Promise<number>;
  create(key: string, value: string): Promise<number>;
  update(key: string, value: string, revision: number): Promise<number>;
};
type Connection = { close(): Promise<void> };
type Transport = { connect(options: { servers: string }): Promise<Connection> };
type Kv = { Kvm: new (connection: Connection) => { create(name: string, options: object): Promise<Bucket> } };

const wrongLastSequence = 10_071;

/** A bucket in a file. The option to sync each write appeared in version 2.10. */
export async function startNats(): Promise<KvPeer> {
  const { path, version } = unpackDebian('nats-server', 'usr/sbin/nats-server');
  const packages = installPackages('nats', ['@nats-io/transport-node@3.4.0', '@nats-io/kv@3.4.0']);
  const { connect } = await packages.load<Transport>('@nats-io/transport-node');
  const { Kvm } = await packages.load<Kv>('@nats-io/kv');
  const server = await startProcess(
    path,
    (directory, [port]) => {
      const file = join(directory, 'nats.conf');
      writeFileSync(file, `listen: "127.0.0.1:${port}"\njetstream { store_dir: "${directory}" }\n`);
      return ['--config', file];
    },
    async (port) => {
      await (await connect({ servers: `127.0.0.1:${port}` })).close();
      return true;
    },
  );
  const connection = await connect({ servers: `127.0.0.1:${server.port}` });
  const bucket = await new Kvm(connection).create('bench', { storage: 'file', history: 1 });
  return {
    ...{ program: 'NATS JetStream KV', version },
    guarantees:
      'no fsync before the response: the disk is synced every 2 minutes; one account; own protocol over TCP; increments read and compare',
    pids: [server.pid],
    get: async (key) => (await bucket.get(key))?.string(),
    put: (key, value) => bucket.put(key, value),
    async increment(key) {
      for (;;)
        try {
          const found = await bucket.get(key);
          return found
            ? await bucket.update(key, String(Number(found.string()) + 1), found.revision)
            : await bucket.create(key, '1');
        } catch (error) {
          if ((error as { code?: number }).code !== wrongLastSequence) throw error;
        }
    },
    close: async () => {
      await connection.close();
      await server.stop();
    },
  };
}
