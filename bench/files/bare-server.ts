/** The minimum cost of streaming a file: only node:http, with a hash on the way in and durable at the end. */
import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { stat, unlink } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';

const directory = process.argv[2] ?? '';

const server = createServer(async (request, response) => {
  const file = join(directory, request.url ?? '');
  if (request.method === 'POST') {
    const hash = createHash('sha256');
    const hashing = new Transform({
      transform(chunk, _encoding, done) {
        hash.update(chunk);
        done(null, chunk);
      },
    });
    // A new file each time, as in a store: overwriting an existing file costs the disk less.
    const name = randomUUID();
    await pipeline(request, hashing, createWriteStream(join(directory, name), { flush: true }));
    response.end(`${hash.digest('hex')} /${name}`);
  } else if (request.method === 'DELETE') {
    await unlink(file);
    response.end();
  } else {
    response.setHeader('content-length', (await stat(file)).size);
    // A client that leaves breaks its download off.
    await pipeline(createReadStream(file), response).catch(() => {});
  }
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${typeof address === 'object' && address !== null ? address.port : ''}\n`);
});
