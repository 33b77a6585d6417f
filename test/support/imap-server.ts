import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';

/** A mailbox in memory behind the part of IMAP that clients need to read it. */
export async function startImapServer(user: string, password: string) {
  const messages = new Map<number, string>();
  const fetched: number[] = [];
  let next = 1;
  let validity = 7;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('close', () => sockets.delete(socket)).on('error', () => {}));
    let buffer = '';
    let isKnown = false;
    socket.write('* OK ready\r\n');
    socket.on('data', (chunk) => {
      buffer += chunk.toString();
      for (let end = buffer.indexOf('\r\n'); end >= 0; end = buffer.indexOf('\r\n')) {
        respond(buffer.slice(0, end));
        buffer = buffer.slice(end + 2);
      }
    });
    function respond(line: string): void {
      const [tag = '', ...words] = line.split(' ');
      const command = words.join(' ');
      const ok = () => socket.write(`${tag} OK done\r\n`);
      if (command === 'CAPABILITY') {
        socket.write('* CAPABILITY IMAP4rev1\r\n');
        ok();
      } else if (command.startsWith('LOGIN ')) {
        isKnown = command.replace(/^LOGIN (\w+) /, 'LOGIN "$1" ') === `LOGIN "${user}" "${password}"`;
        if (isKnown) ok();
        else socket.write(`${tag} NO wrong password\r\n`);
      } else if (!isKnown) socket.write(`${tag} BAD sign in first\r\n`);
      else if (command.startsWith('EXAMINE ')) {
        socket.write(`* ${messages.size} EXISTS\r\n* OK [UIDVALIDITY ${validity}] valid\r\n`);
        ok();
      } else if (command === 'UID SEARCH ALL') {
        socket.write(`* SEARCH ${[...messages.keys()].join(' ')}\r\n`);
        ok();
      } else if (command.startsWith('UID FETCH ')) {
        for (const uid of (words[2] ?? '').split(',').map(Number)) {
          const bytes = messages.get(uid);
          if (bytes === undefined) continue;
          fetched.push(uid);
          socket.write(`* ${uid} FETCH (UID ${uid} BODY[] {${Buffer.byteLength(bytes)}}\r\n${bytes})\r\n`);
        }
        ok();
      } else socket.write(`${tag} BAD unknown command\r\n`);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    /** The messages that were sent, in order. */
    fetched,
    add(subject: string, text: string): number {
      const uid = next++;
      messages.set(
        uid,
        `From: a@example.com\r\nTo: b@example.com\r\nSubject: ${subject}\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${text}\r\n`,
      );
      return uid;
    },
    remove: (uid: number) => messages.delete(uid),
    /** Numbers the messages again, as a server does after a loss. */
    rebuild: () => void validity++,
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
