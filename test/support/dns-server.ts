import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, createServer, isIPv4, type Server } from 'node:net';

/** How the server responds to queries for a name. */
export type DnsBehaviour =
  /** Addresses of both kinds. With several lists, each query of a kind gets the next list; the last list repeats. */
  | { addresses: string[] | string[][] }
  /** A response code: 1 FORMERR, 2 SERVFAIL, 3 NXDOMAIN, 4 NOTIMP, 5 REFUSED. */
  | { code: number }
  | { silent: true }
  /** Truncated over UDP; the addresses follow over TCP. */
  | { addresses: string[]; truncated: true }
  /** These bytes after the id of the query, or without `keepsId` also in place of the id. */
  | { bytes: Buffer; keepsId: boolean }
  /** Addresses in the response to a query for another name. */
  | { addresses: string[]; ofName: string }
  /** An alias, which the client queries next. */
  | { alias: string };

type Question = { id: number; name: string; type: number; raw: Buffer };

const types = { a: 1, cname: 5, aaaa: 28 } as const;

/** A name server on loopback, over UDP and TCP. Names that it does not know do not exist. */
export class DnsServer {
  readonly asked: { name: string; type: number; by: 'udp' | 'tcp' }[] = [];
  readonly #udp: UdpSocket;
  readonly #tcp: Server;
  readonly #behaviours = new Map<string, DnsBehaviour>();
  readonly #times = new Map<string, number>();

  private constructor(udp: UdpSocket, tcp: Server) {
    this.#udp = udp;
    this.#tcp = tcp;
  }

  static async start(): Promise<DnsServer> {
    const tcp = createServer();
    tcp.listen(0, '127.0.0.1');
    await once(tcp, 'listening');
    const udp = createSocket('udp4');
    udp.bind((tcp.address() as AddressInfo).port, '127.0.0.1');
    await once(udp, 'listening');
    const server = new DnsServer(udp, tcp);
    udp.on('message', (bytes, { port, address }) => {
      for (const response of server.#answer(bytes, 'udp')) udp.send(response, port, address);
    });
    tcp.on('connection', (socket) => {
      let waiting = Buffer.alloc(0);
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        waiting = Buffer.concat([waiting, chunk]);
        while (waiting.length >= 2 && waiting.length >= 2 + waiting.readUInt16BE(0)) {
          const size = waiting.readUInt16BE(0);
          for (const response of server.#answer(waiting.subarray(2, 2 + size), 'tcp'))
            socket.write(Buffer.concat([uint16(response.length), response]));
          waiting = waiting.subarray(2 + size);
        }
      });
    });
    return server;
  }

  /** The address in the form that `setServers` takes. */
  get address(): string {
    return `127.0.0.1:${this.#udp.address().port}`;
  }

  set(name: string, behaviour: DnsBehaviour): void {
    this.#behaviours.set(name, behaviour);
    for (const type of [types.a, types.aaaa]) this.#times.delete(`${name} ${type}`);
  }

  count(name: string): number {
    return this.asked.filter((question) => question.name === name).length;
  }

  async close(): Promise<void> {
    this.#udp.close();
    await new Promise((resolve) => this.#tcp.close(resolve));
  }

  #answer(bytes: Buffer, by: 'udp' | 'tcp'): Buffer[] {
    const question = readQuestion(bytes);
    this.asked.push({ name: question.name, type: question.type, by });
    const behaviour = this.#behaviours.get(question.name) ?? { code: 3 };
    if ('silent' in behaviour) return [];
    if ('code' in behaviour) return [message(question, { code: behaviour.code })];
    if ('bytes' in behaviour)
      return [behaviour.keepsId ? Buffer.concat([uint16(question.id), behaviour.bytes]) : behaviour.bytes];
    if ('alias' in behaviour)
      return [message(question, { records: [record(types.cname, nameBytes(behaviour.alias))] })];
    if ('truncated' in behaviour && by === 'udp') return [message(question, { isTruncated: true })];
    const records = this.#next(question, behaviour.addresses)
      .filter((address) => isIPv4(address) === (question.type === types.a))
      .map((address) => record(question.type, addressBytes(address)));
    if ('ofName' in behaviour)
      return [message({ ...question, raw: questionBytes(behaviour.ofName, question.type) }, { records })];
    return [message(question, { records })];
  }

  #next({ name, type }: Question, addresses: string[] | string[][]): string[] {
    if (!Array.isArray(addresses[0])) return addresses as string[];
    const key = `${name} ${type}`;
    const time = this.#times.get(key) ?? 0;
    this.#times.set(key, time + 1);
    return (addresses as string[][])[Math.min(time, addresses.length - 1)] ?? [];
  }
}

function readQuestion(bytes: Buffer): Question {
  const labels: string[] = [];
  let at = 12;
  for (let size = bytes[at] ?? 0; size > 0; at += size + 1, size = bytes[at] ?? 0)
    labels.push(bytes.toString('latin1', at + 1, at + 1 + size));
  const name = labels.join('.').toLowerCase();
  return { id: bytes.readUInt16BE(0), name, type: bytes.readUInt16BE(at + 1), raw: bytes.subarray(12, at + 5) };
}

function message(
  { id, raw }: Question,
  { code = 0, records = [], isTruncated = false }: { code?: number; records?: Buffer[]; isTruncated?: boolean },
): Buffer {
  const counts = [1, records.length, 0, 0].map(uint16);
  return Buffer.concat([uint16(id), uint16(0x8180 | (isTruncated ? 0x200 : 0) | code), ...counts, raw, ...records]);
}

/** A record for the name in the query, which must not be cached. */
function record(type: number, data: Buffer): Buffer {
  return Buffer.concat([uint16(0xc00c), uint16(type), uint16(1), Buffer.alloc(4), uint16(data.length), data]);
}

function questionBytes(name: string, type: number): Buffer {
  return Buffer.concat([nameBytes(name), uint16(type), uint16(1)]);
}

function nameBytes(name: string): Buffer {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

/** IPv6 addresses are written in full, without `::` or an IPv4 part. */
function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  return Buffer.concat(address.split(':').map((part) => uint16(Number.parseInt(part, 16))));
}

function uint16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff]);
}
