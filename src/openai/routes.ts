import type { BlobStore } from '../blob/blob-store.ts';
import type { Database } from '../db/database.ts';
import type { FileService } from '../files/service.ts';
import type { Api } from '../http/route/route.ts';
import type { StreamHub } from '../http/streams/sse.ts';
import type { Knowledge } from '../knowledge/domain.ts';
import { registerFileRoutes } from './file-routes.ts';
import type { ResponseDeps } from './responses/plan.ts';
import { registerResponseRoutes } from './responses/routes.ts';
import { createOpenAiService } from './service.ts';
import { registerStoreFileRoutes } from './store-file-routes.ts';
import { registerStoreRoutes } from './store-routes.ts';

type OpenAiDeps = Omit<ResponseDeps, 'stores'> & {
  db: Database;
  blobs: BlobStore;
  files: FileService;
  knowledge: Knowledge;
  streams: StreamHub;
};

/** Files, vector stores and responses for OpenAI's clients, under `/v1`. */
export function registerOpenAiRoutes(api: Api, deps: OpenAiDeps): void {
  const service = createOpenAiService(deps);
  registerFileRoutes(api, deps);
  registerStoreRoutes(api, { service });
  registerStoreFileRoutes(api, { service, knowledge: deps.knowledge });
  registerResponseRoutes(api, { ...deps, stores: service });
}
