import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { readConfig } from '../../config/config.ts';
import { createDirectories } from '../../lib/directories.ts';
import { writePrivateFile } from '../../lib/private-file.ts';
import { ApiError } from '../errors.ts';
import { profilePath } from './profile.ts';
import type { Session } from './session.ts';

/** A file on disk that is sent in pieces. */
type ResumableFile = {
  name: string;
  contentType: string;
  path: string;
  bytes: number;
  modifiedMs: number;
  /** The contents from a byte on. */
  read(start: number): AsyncIterable<Uint8Array>;
};

/** Consecutive attempts that store no byte. */
const attemptsMax = 10;
const retryMs = 1_000;
/** Unfinished uploads in the file beside the profile. */
const notesMax = 100;

type Found = { offset: number; file: string };

/**
 * Uploads a file over as many connections as it needs, and returns its id. Resumes an upload of the same unchanged file
 * that an earlier command started, even if that command was killed.
 */
export async function uploadResumably(
  { client, signal }: Session,
  file: ResumableFile,
  members: Record<string, string | undefined>,
  onSent: (bytes: number) => void,
): Promise<string> {
  const notes = new UploadNotes([client.target.url, file.path, file.bytes, file.modifiedMs, file.name, members]);
  const begun = notes.find();
  const earlier = begun === undefined ? undefined : await findUpload(client, begun);
  const id = earlier === undefined ? await createUpload(client, file, members) : (begun ?? '');
  notes.write(id);
  let at = earlier ?? { offset: 0, file: '' };
  for (let attempts = 0; at.file === ''; ) {
    const before = at.offset;
    try {
      at = await appendRest(client, id, file, at.offset, onSent);
    } catch (error) {
      if (signal.aborted || !isTransient(error)) throw error;
      attempts += 1;
      if (attempts >= attemptsMax) throw error;
      await wait(retryMs, undefined, { signal });
      const found = await findUpload(client, id).catch((cause: unknown) => {
        if (signal.aborted || !isTransient(cause)) throw cause;
        return at;
      });
      if (found === undefined) throw new ApiError(404, '404: The upload has expired. Start it again.');
      at = found;
      if (at.offset > before) attempts = 0;
    }
  }
  notes.write(undefined);
  return at.file;
}

type Client = Session['client'];

const protocol = { 'tus-resumable': '1.0.0' };

async function createUpload(
  client: Client,
  file: ResumableFile,
  members: Record<string, string | undefined>,
): Promise<string> {
  const metadata = Object.entries({ filename: file.name, content_type: file.contentType, ...members })
    .flatMap(([name, text]) => (text === undefined ? [] : [`${name} ${Buffer.from(text).toString('base64')}`]))
    .join(',');
  const { headers } = await client.exchange('POST', '/uploads', {
    headers: { ...protocol, 'upload-length': String(file.bytes), 'upload-metadata': metadata },
  });
  return headers.location?.split('/').at(-1) ?? '';
}

/** Where an upload continues; undefined when it has ended without a file. */
async function findUpload(client: Client, id: string): Promise<Found | undefined> {
  try {
    const { headers } = await client.exchange('GET', `/uploads/${id}`, { headers: protocol });
    return readFound(headers);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}

async function appendRest(
  client: Client,
  id: string,
  file: ResumableFile,
  offset: number,
  onSent: (bytes: number) => void,
): Promise<Found> {
  async function* counted() {
    let sent = offset;
    for await (const chunk of file.read(offset)) {
      sent += chunk.byteLength;
      onSent(sent);
      yield chunk;
    }
  }
  const { headers } = await client.exchange('PATCH', `/uploads/${id}`, {
    headers: {
      ...protocol,
      'content-type': 'application/offset+octet-stream',
      'upload-offset': String(offset),
      'content-length': String(file.bytes - offset),
    },
    body: counted(),
  });
  return readFound(headers);
}

function readFound(headers: Record<string, string | undefined>): Found {
  return { offset: Number(headers['upload-offset']), file: headers['x-file'] ?? '' };
}

/** Whether another attempt may succeed: the connection broke, the server restarts, or the last request has not ended. */
function isTransient(error: unknown): boolean {
  return (
    error instanceof ApiError && (error.status === 0 || error.status >= 500 || [408, 409, 423].includes(error.status))
  );
}

/** Stores the ids of unfinished uploads, by what they upload, in a file beside the profile. */
class UploadNotes {
  readonly #file = join(dirname(profilePath(readConfig())), 'uploads.json');
  readonly #name: string;

  constructor(what: unknown) {
    this.#name = hash('sha256', JSON.stringify(what));
  }

  find(): string | undefined {
    const id = this.#read()[this.#name];
    return typeof id === 'string' ? id : undefined;
  }

  /** Never throws: without the file, an upload that is repeated only starts from its first byte. */
  write(id: string | undefined): void {
    const { [this.#name]: _former, ...others } = this.#read();
    const kept = Object.entries(others).slice(-notesMax);
    try {
      createDirectories(dirname(this.#file), 0o700);
      writePrivateFile(
        this.#file,
        `${JSON.stringify(Object.fromEntries(id === undefined ? kept : [...kept, [this.#name, id]]))}\n`,
      );
    } catch {
      // The home directory is not writable.
    }
  }

  #read(): Record<string, unknown> {
    try {
      const content: unknown = JSON.parse(readFileSync(this.#file, 'utf8'));
      return typeof content === 'object' && content !== null ? (content as Record<string, unknown>) : {};
    } catch {
      return {};
    }
  }
}
