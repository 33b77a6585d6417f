import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Connector, ConnectorBatch } from '../src/connector.ts';

/*
 * A connector for a mailbox (IMAP4rev1, RFC 9051). Each message becomes a document; a deleted message deletes it.
 * The cursor is the set of messages that were already sent.
 */

export type Mailbox = {
  host: string;
  port: number;
  user: string;
  password: string;
  /** Default INBOX. */
  folder?: string;
  /** Default true. Only for servers on the same machine, false. */
  tls?: boolean;
};

/** Messages that one batch holds. */
const messagesPerBatch = 20;

export function mailbox(options: Mailbox): Connector {
  return {
    full: (cursor) => read(options, cursor, false),
    changes: (cursor) => read(options, cursor, true),
  };
}

/** The messages that the cursor does not name, and if wanted, the deletion of those that it names and are gone. */
async function* read(options: Mailbox, cursor: string | null, deletes: boolean): AsyncGenerator<ConnectorBatch> {
  const server = await Imap.open(options);
  try {
    const validity = await server.select(options.folder ?? 'INBOX');
    const before = readCursor(cursor);
    // The server has numbered its messages again, so the old numbers mean nothing.
    if (before.validity !== undefined && before.validity !== validity)
      throw new Error('The mailbox was rebuilt. Run a full sync.');
    const current = await server.search();
    const sent = new Set(before.sent);
    const name = (uid: number) => `${validity}/${uid}`;
    if (deletes) {
      const gone = before.sent.filter((uid) => !current.includes(uid));
      for (const uid of gone) sent.delete(uid);
      if (gone.length > 0)
        yield { deletes: gone.map((uid) => ({ external_id: name(uid) })), cursor: writeCursor(validity, sent) };
    }
    const unsent = current.filter((uid) => !sent.has(uid));
    for (let at = 0; at < unsent.length; at += messagesPerBatch) {
      const uids = unsent.slice(at, at + messagesPerBatch);
      const messages = await server.fetch(uids);
      for (const uid of uids) sent.add(uid);
      yield {
        upserts: [...messages].map(([uid, bytes]) => ({
          external_id: name(uid),
          content: { data: bytes.toString('base64'), data_encoding: 'base64', content_type: 'message/rfc822' },
        })),
        cursor: writeCursor(validity, sent),
      };
    }
  } finally {
    server.close();
  }
}

/** `VALIDITY 1:40,42`: the messages that were sent. */
function writeCursor(validity: string, sent: Set<number>): string {
  const ranges: [number, number][] = [];
  for (const uid of [...sent].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && last[1] === uid - 1) last[1] = uid;
    else ranges.push([uid, uid]);
  }
  return `${validity} ${ranges.map(([from, to]) => (from === to ? from : `${from}:${to}`)).join(',')}`;
}

function readCursor(cursor: string | null): { validity: string | undefined; sent: number[] } {
  const [validity, ranges = ''] = cursor?.split(' ') ?? [];
  const sent: number[] = [];
  for (const range of ranges.split(',').filter(Boolean)) {
    const [from = 0, to = from] = range.split(':').map(Number);
    for (let uid = from; uid <= to; uid++) sent.push(uid);
  }
  return { validity, sent };
}

/** The few commands that the connector needs, one at a time. */
class Imap {
  readonly #socket: Socket;
  readonly #chunks: AsyncIterator<Buffer>;
  #buffer = Buffer.alloc(0);
  #tag = 0;

  static async open({ host, port, user, password, tls = true }: Mailbox): Promise<Imap> {
    const server = new Imap(tls ? connectTls({ host, port, servername: host }) : connectPlain({ host, port }));
    await server.#line();
    await server.#command(`LOGIN ${quoted(user)} ${quoted(password)}`);
    return server;
  }

  constructor(socket: Socket) {
    this.#socket = socket.setTimeout(60_000, () => socket.destroy(new Error('The server is silent.')));
    this.#chunks = socket[Symbol.asyncIterator]();
  }

  /** Opens a folder for reading. Returns the number of its numbering. */
  async select(folder: string): Promise<string> {
    const lines = await this.#command(`EXAMINE ${quoted(folder)}`);
    return lines.map(({ text }) => /\[UIDVALIDITY (\d+)\]/i.exec(text)?.[1]).find(Boolean) ?? '0';
  }

  /** The unique ids of all messages, ascending. */
  async search(): Promise<number[]> {
    const lines = await this.#command('UID SEARCH ALL');
    const uids = lines.flatMap(({ text }) => /^\* SEARCH(.*)$/i.exec(text)?.[1]?.match(/\d+/g) ?? []);
    return uids.map(Number).sort((a, b) => a - b);
  }

  /** The bytes of these messages, without marking them as read. */
  async fetch(uids: number[]): Promise<Map<number, Buffer>> {
    const lines = await this.#command(`UID FETCH ${uids.join(',')} (UID BODY.PEEK[])`);
    const messages = new Map<number, Buffer>();
    for (const { text, literal } of lines) {
      const uid = /UID (\d+)/i.exec(text)?.[1];
      if (uid !== undefined && literal) messages.set(Number(uid), literal);
    }
    return messages;
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Sends a command and reads its untagged responses. */
  async #command(command: string): Promise<{ text: string; literal?: Buffer }[]> {
    const tag = `a${++this.#tag}`;
    this.#socket.write(`${tag} ${command}\r\n`);
    const lines: { text: string; literal?: Buffer }[] = [];
    for (;;) {
      let text = await this.#line();
      if (text.startsWith(`${tag} `)) {
        if (!text.startsWith(`${tag} OK`)) throw new Error(`The server refused ${command.split(' ')[0]}: ${text}`);
        return lines;
      }
      const size = /\{(\d+)\}$/.exec(text)?.[1];
      const literal = size === undefined ? undefined : await this.#bytes(Number(size));
      if (literal) text += await this.#line();
      lines.push({ text, ...(literal && { literal }) });
    }
  }

  async #line(): Promise<string> {
    for (;;) {
      const end = this.#buffer.indexOf('\r\n');
      if (end >= 0) {
        const line = this.#buffer.subarray(0, end).toString();
        this.#buffer = this.#buffer.subarray(end + 2);
        return line;
      }
      await this.#more();
    }
  }

  async #bytes(count: number): Promise<Buffer> {
    while (this.#buffer.length < count) await this.#more();
    const bytes = Buffer.from(this.#buffer.subarray(0, count));
    this.#buffer = this.#buffer.subarray(count);
    return bytes;
  }

  async #more(): Promise<void> {
    const { done, value } = await this.#chunks.next();
    if (done) throw new Error('The server closed the connection.');
    this.#buffer = Buffer.concat([this.#buffer, value]);
  }
}

function quoted(text: string): string {
  if (/[\r\n]/.test(text)) throw new Error('A name or password cannot contain a line break.');
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}
