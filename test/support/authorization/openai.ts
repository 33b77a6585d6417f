import type { Fixtures } from './fixtures.ts';
import type { Expectation } from './matrix.ts';
import { deleteOwned, everybody, readOwned, sources, users, withoutModel } from './tables.ts';
import type { Ownership } from './tenants.ts';

const form = ['--form', 'content-disposition: form-data; name="purpose"', '', 'assistants', '--form'];
const file = ['content-disposition: form-data; name="file"; filename="a.txt"', 'content-type: text/plain', '', 'Text.'];

/** A form that uploads a file. */
export const uploadForm = {
  body: [...form, ...file, '--form--', ''].join('\r\n'),
  headers: { 'content-type': 'multipart/form-data; boundary=form' },
};

const store = '/v1/vector_stores';
const ofStore = `${store}/:source`;

/** The routes under `/v1`, which use the tables of files and sources. */
export function openAiExpectations(make: Fixtures['make']): Record<string, Expectation> {
  /** Attaches a new file with each request: one that is still being processed is 409. */
  const withFile = (body: (id: string) => object) => ({
    make: make.source,
    send: async ({ whose }: { whose: Ownership }) => ({ body: body((await make.file(whose)).id) }),
  });
  return {
    'POST /v1/files': { table: everybody, send: () => uploadForm },
    'GET /v1/files': { table: everybody },
    'GET /v1/files/:file': { table: readOwned, make: make.file },
    'GET /v1/files/:file/content': { table: readOwned, make: make.file },
    'DELETE /v1/files/:file': { table: deleteOwned, make: make.file, consumes: true },
    [`POST ${store}`]: { table: everybody },
    [`GET ${store}`]: { table: everybody },
    [`GET ${ofStore}`]: { table: sources.read, make: make.source },
    [`POST ${ofStore}`]: { table: sources.update, make: make.source, send: () => ({ body: { name: 'Name' } }) },
    [`DELETE ${ofStore}`]: { table: sources.delete, make: make.source, consumes: true },
    [`POST ${ofStore}/search`]: {
      table: sources.read,
      make: make.source,
      send: () => ({ body: { query: 'text' } }),
    },
    [`POST ${ofStore}/files`]: { table: sources.update, ...withFile((id) => ({ file_id: id })) },
    [`GET ${ofStore}/files`]: { table: sources.read, make: make.source },
    [`GET ${ofStore}/files/:file`]: { table: sources.read, make: make.storeFile },
    [`POST ${ofStore}/files/:file`]: {
      table: sources.update,
      make: make.storeFile,
      send: () => ({ body: { attributes: { a: 1 } } }),
    },
    [`DELETE ${ofStore}/files/:file`]: { table: sources.update, make: make.storeFile, consumes: true },
    [`GET ${ofStore}/files/:file/content`]: { table: sources.read, make: make.storeFile },
    [`POST ${ofStore}/file_batches`]: { table: sources.update, ...withFile((id) => ({ file_ids: [id] })) },
    [`GET ${ofStore}/file_batches/:ingestion`]: { table: sources.read, make: make.batch },
    [`POST ${ofStore}/file_batches/:ingestion/cancel`]: { table: sources.update, make: make.batch },
    [`GET ${ofStore}/file_batches/:ingestion/files`]: { table: sources.read, make: make.batch },
    'POST /v1/responses': { table: withoutModel, send: () => ({ body: { input: 'text' } }) },
    'GET /v1/responses/:response': { table: users.tokens, make: make.response },
    'GET /v1/responses/:response/input_items': { table: users.tokens, make: make.response },
    'DELETE /v1/responses/:response': { table: users.tokens, make: make.response, consumes: true },
  };
}
