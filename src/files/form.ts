import { createHash, type Hash } from 'node:crypto';
import { once } from 'node:events';
import type { BusboyFileStream } from '@fastify/busboy';
import type { FastifyRequest } from 'fastify';
import { AppError, invalidField } from '../lib/errors.ts';
import { lazyPackage } from '../lib/lazy-package.ts';

/** The file of a form. When `bytes` ends, the whole form has arrived and its fields are complete. */
type FormFile = { filename: string; contentType: string; bytes: AsyncIterable<Uint8Array> };

const busboy = lazyPackage<typeof import('@fastify/busboy')>('@fastify/busboy');
const formLimits = { files: 1, fields: 20, fieldNameSize: 100, fieldSize: 1_024, headerPairs: 20, headerSize: 8_192 };

/**
 * Reads a form (RFC 7578) with one file in the field `file`. `take` stores the file while it arrives; other fields
 * may follow it. Nothing is buffered. 400 if the body is not such a form.
 */
export async function receiveForm<T>(
  request: FastifyRequest,
  take: (file: FormFile, fields: ReadonlyMap<string, string>) => Promise<T>,
): Promise<T> {
  const type = request.headers['content-type'] ?? '';
  if (!/^multipart\/form-data\s*;/i.test(type))
    throw new AppError('unsupported_media_type', 'Send a form, with Content-Type: multipart/form-data.');
  const form = openForm(type);
  const fields = new Map<string, string>();
  const whole = Promise.withResolvers<void>();
  const failed = Promise.withResolvers<never>();
  let taken: Promise<T> | undefined;
  let bytes: BusboyFileStream | undefined;
  const parts = new PartHashes(request);
  for (const { promise } of [whole, failed]) promise.catch(() => {});
  form.on('field', (name, value, nameCut, valueCut, _encoding, contentType) => {
    parts.add('field', name, contentType, value);
    if (nameCut || valueCut) failed.reject(invalidField(name, `is longer than ${formLimits.fieldSize} bytes`));
    else if (fields.has(name)) failed.reject(invalidField(name, 'is sent twice'));
    else fields.set(name, value);
  });
  form.on('file', (name, stream, filename, _encoding, contentType) => {
    stream.on('error', (error) => failed.reject(brokenForm(error)));
    if (name !== 'file') {
      stream.resume();
      failed.reject(invalidField(name, 'is not a known file of this form'));
      return;
    }
    bytes = stream;
    const hash = parts.add('file', name, contentType, filename);
    taken = take({ filename, contentType, bytes: readUntilFormEnds(stream, hash, whole.promise) }, fields);
    taken.catch(failed.reject);
  });
  form.on('filesLimit', () => failed.reject(invalidField('file', 'must be one file')));
  form.on('fieldsLimit', () => failed.reject(invalidField('body', `has more than ${formLimits.fields} fields`)));
  form.on('error', (error) => failed.reject(brokenForm(error)));
  form.on('finish', () => {
    parts.end();
    whole.resolve();
  });
  failed.promise.catch(whole.reject);

  const feed = async () => {
    for await (const chunk of request.raw.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>)
      if (!form.write(chunk)) await Promise.race([once(form, 'drain'), failed.promise]);
    form.end();
    await whole.promise;
  };
  try {
    await Promise.race([feed(), failed.promise]);
    if (taken === undefined) throw invalidField('file', 'is required');
    return await taken;
  } catch (error) {
    form.destroy();
    // Otherwise its reader would wait forever.
    bytes?.destroy();
    await taken?.catch(() => {});
    throw error;
  }
}

function openForm(contentType: string) {
  try {
    return new (busboy().Busboy)({
      headers: { 'content-type': contentType },
      preservePath: true,
      limits: formLimits,
    });
  } catch (error) {
    throw brokenForm(error);
  }
}

async function* readUntilFormEnds(
  stream: BusboyFileStream,
  hash: Hash,
  whole: Promise<void>,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    yield chunk;
  }
  await whole;
}

/**
 * The digest of a form, for `Idempotency-Key`: name, file name, type and bytes of each part in order. A client writes
 * another boundary between the parts each time.
 */
class PartHashes {
  readonly #request: FastifyRequest;
  readonly #hashes: Hash[] = [];

  constructor(request: FastifyRequest) {
    this.#request = request;
  }

  /** Begins a part. Returns the hash of its bytes. */
  add(...part: [kind: 'field' | 'file', name: string, contentType: string, nameOrValue: string]): Hash {
    const hash = createHash('sha256').update(`${JSON.stringify(part)}\n`);
    this.#hashes.push(hash);
    return hash;
  }

  end(): void {
    if (this.#request.formDigest === undefined) return;
    const all = createHash('sha256');
    for (const hash of this.#hashes) all.update(hash.digest());
    this.#request.formDigest = all.digest('hex');
  }
}

function brokenForm(cause: unknown): AppError {
  return new AppError('invalid_parameters', 'body: is not a valid form', {
    fields: [{ field: 'body', message: 'is not a valid form' }],
    cause,
  });
}
