import { Agent } from 'undici';
import { installPackages, unpackDebian } from './install.ts';
import { startProcess } from './process.ts';
import type { KvPeer } from './row.ts';

/** The part of etcd3 that is used. */
type Transaction = {
  get(key: string): { number(): Promise<number | null> };
  put(key: string): { value(value: number): PromiseLike<unknown> };
};
type Etcd3 = {
  get(key: string): { string(): Promise<string | null> };
  put(key: string): { value(value: string): PromiseLike<unknown> };
  stm(options: { retries: number }): { transact(run: (tx: Transaction) => Promise<unknown>): Promise<unknown> };
  close(): void;
};

/** The same server, through its gRPC API with the client etcd3 and through its HTTP gateway. */
export const startEtcd = [startWithGrpc, startWithHttp];

const retries = 1_000;

async function startWithGrpc(): Promise<KvPeer> {
  const packages = installPackages('etcd3', ['etcd3@1.1.2']);
  const { Etcd3: Client } = await packages.load<{ Etcd3: new (options: { hosts: string }) => Etcd3 }>('etcd3');
  const { server, described } = await startServer(`gRPC with etcd3 ${packages.version('etcd3')}`);
  const client = new Client({ hosts: `http://127.0.0.1:${server.port}` });
  return {
    ...described,
    program: 'etcd, gRPC',
    pids: [server.pid],
    get: async (key) => (await client.get(key).string()) ?? undefined,
    put: async (key, value) => client.put(key).value(value),
    increment: (key) =>
      client.stm({ retries }).transact(async (tx) => tx.put(key).value(((await tx.get(key).number()) ?? 0) + 1)),
    close: async () => {
      client.close();
      await server.stop();
    },
  };
}

async function startWithHttp(): Promise<KvPeer> {
  const { server, described } = await startServer('HTTP');
  const agent = new Agent({ connections: 64 });
  const origin = `http://127.0.0.1:${server.port}`;
  const post = async <T>(path: string, body: object): Promise<T> => {
    const response = await agent.request({
      origin,
      method: 'POST',
      path: `/v3/kv/${path}`,
      body: JSON.stringify(body),
    });
    if (response.statusCode >= 300) throw new Error(await response.body.text());
    return (await response.body.json()) as T;
  };
  type Found = { kvs?: { value: string; mod_revision: string }[] };
  const find = async (key: string) => (await post<Found>('range', { key: encode(key) })).kvs?.[0];
  return {
    ...described,
    program: 'etcd, HTTP gateway',
    pids: [server.pid],
    get: async (key) => {
      const found = await find(key);
      return found && decode(found.value);
    },
    put: (key, value) => post('put', { key: encode(key), value: encode(value) }),
    async increment(key) {
      for (let tries = 0; tries < retries; tries++) {
        const found = await find(key);
        const value = encode(String(Number(found ? decode(found.value) : 0) + 1));
        const { succeeded } = await post<{ succeeded?: boolean }>('txn', {
          compare: [{ key: encode(key), target: 'MOD', mod_revision: found?.mod_revision ?? '0' }],
          success: [{ request_put: { key: encode(key), value } }],
        });
        if (succeeded) return;
      }
      throw new Error(`${key} changes all the time.`);
    },
    close: async () => {
      await agent.close();
      await server.stop();
    },
  };
}

async function startServer(how: string) {
  const { path, version } = unpackDebian('etcd-server', 'usr/bin/etcd');
  const server = await startProcess(
    path,
    (directory, [port, peerPort]) => {
      const [client, peer] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${peerPort}`];
      return [
        ...['--data-dir', directory, '--listen-client-urls', client, '--advertise-client-urls', client],
        ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`],
      ];
    },
    async (port) => (await fetch(`http://127.0.0.1:${port}/health`)).ok,
  );
  const guarantees = `fsync before the response; one key space, users and roles are off; ${how}; increments read and compare`;
  return { server, described: { version, guarantees } };
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64');
}

function decode(text: string): string {
  return Buffer.from(text, 'base64').toString();
}
