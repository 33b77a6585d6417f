import type { BlobStore } from '../blob/blob-store.ts';
import type { Database } from '../db/database.ts';
import type { FileService } from '../files/service.ts';
import type { Api } from '../http/route/route.ts';
import type { Knowledge } from '../knowledge/domain.ts';
import { registerFileRoutes } from './file-routes.ts';
import { createOpenAiService } from './service.ts';
import { registerStoreFileRoutes } from './store-file-routes.ts';
import { registerStoreRoutes } from './store-routes.ts';

type OpenAiDeps = { db: Database; blobs: BlobStore; files: FileService; knowledge: Knowledge };

/** Files and vector stores for OpenAI's clients, under `/v1`. */
export function registerOpenAiRoutes(api: Api, deps: OpenAiDeps): void {
  const service = createOpenAiService(deps);
  registerFileRoutes(api, deps);
  registerStoreRoutes(api, { service });
  registerStoreFileRoutes(api, { service, knowledge: deps.knowledge });
}
