import type { NodeDomains } from './automations/node-services.ts';
import { presentExtraction } from './extractions/present.ts';
import { createExtractionService, type ExtractionDeps } from './extractions/service.ts';
import { type FileLinks, presentFile } from './files/present.ts';
import { createFileService, type FileDeps, type UploadInput } from './files/service.ts';
import { presentEntry } from './kv/routes.ts';
import { createKvService, type KvLimits } from './kv/service.ts';

/** The operations of other domains that nodes of workflows carry out, bodies and answers as the API has them. */
export function createNodeDomains(
  base: FileDeps & FileLinks & Pick<ExtractionDeps, 'parser' | 'fetcher'>,
  options: { kvLimits: KvLimits },
): NodeDomains {
  const kv = (db: FileDeps['db']) => createKvService({ db, limits: options.kvLimits });
  const files = (db: FileDeps['db']) => createFileService({ ...base, db });
  const extractions = (db: FileDeps['db']) => createExtractionService({ ...base, db, files: files(db) });
  return {
    kv: {
      get: async (db, caller, key, user) => presentEntry(await kv(db).get(caller, key, user)),
      put: async (db, caller, key, input) => presentEntry(await kv(db).put(caller, key, input, undefined)),
      delete: (db, caller, key, user) => kv(db).delete(caller, key, user, undefined),
    },
    files: {
      async upload(db, caller, body) {
        const { file } = await files(db).upload(caller, body as UploadInput);
        return presentFile(base, file, base.clock.now());
      },
    },
    extractions: {
      async start(db, caller, body) {
        const { row } = await extractions(db).create(
          caller,
          body as Parameters<ReturnType<typeof extractions>['create']>[1],
        );
        return { id: row.id };
      },
      async findEnd(caller, id) {
        const view = await extractions(base.db).get(caller, id);
        if (view.row.state === 'running') return undefined;
        if (view.row.state === 'done') return { output: await presentExtraction(base, view, base.clock.now()) };
        const { code = 'extraction_failed', message = 'The extraction failed.' } = view.row.error ?? {};
        return { error: { code, message } };
      },
    },
  };
}
