import { join } from 'node:path';
import { ExpressionError } from '../../automations/engine/expressions.ts';
import type { CellMembership } from '../../cells/placement.ts';
import type { PictureRequest } from '../../content/picture/picture.ts';
import { createCrawls } from '../../crawls/domain.ts';
import { createExtractions } from '../../extractions/domain.ts';
import { createFiles } from '../../files/domain.ts';
import { createInstallationService } from '../../installations/service.ts';
import { createKnowledge } from '../../knowledge/domain.ts';
import type { OpenCache } from '../../knowledge/index/cache.ts';
import { createKv } from '../../kv/domain.ts';
import { newUuid } from '../../lib/ids.ts';
import { limits } from '../../lib/limits.ts';
import type { Llm } from '../../llm/service.ts';
import { observeSearches } from '../../monitoring/traffic.ts';
import { createThreadService } from '../../threads/service.ts';
import { createUploads } from '../../uploads/domain.ts';
import type { Services } from '../services.ts';
import type { Base, DomainGroup } from './base.ts';

export type Content = ReturnType<typeof createContent>['services'];

/** What apps store and search: files, key-value entries, extractions and knowledge, with the crawls that feed them. */
export function createContent(
  services: Services,
  base: Base,
  llm: Llm,
  ownsApp: CellMembership['ownsApp'] | undefined,
) {
  const { config, log, parser, fetcher } = services;
  const { expressions } = services.process;
  const fileDeps = {
    ...{ ...base, log, uploadBytesMax: config.uploadBytesMax, deletedBlobDays: config.deletedBlobDays },
    ...(ownsApp === undefined ? {} : { ownsApp }),
    pictureCacheBytesMax: config.pictureCacheMb * 1024 * 1024,
    makePicture: (bytes: Uint8Array, request: PictureRequest, lane: string) => parser.picture(bytes, request, { lane }),
    imageSize: (bytes: Uint8Array, lane: string) => parser.imageSize(bytes, limits.imageSizeTimeoutMs, { lane }),
  };
  const { resumableBytesMax, unfinishedUploadsMax, uploadHours } = config;
  const files = createFiles(fileDeps);
  const uploads = createUploads({
    ...{ ...fileDeps, session: services.session, resumableBytesMax, unfinishedUploadsMax, uploadHours },
  });
  const extractions = createExtractions({
    ...{ ...base, parser, files: files.service, fetcher, log, llm },
    schemaChecker: { check: expressions.checkSchema, isRefusal: (error) => error instanceof ExpressionError },
    contextTokens: config.llmContextTokens,
    requestMsMax: config.llmRequestSeconds * 1000,
    tokensMax: config.llmRunTokens,
  });
  const knowledge = createKnowledge(knowledgeDeps(services, base, llm));
  const crawls = createCrawls({
    ...{ ...base, log, parser, fetcher, renderer: services.renderer },
    workSlots: services.process.crawlSlots,
    bodies: services.process.crawlBodies,
    concurrency: config.crawlConcurrency,
    hostConcurrency: config.crawlHostConcurrency,
    hostDelayMs: config.crawlHostDelayMs,
    sinks: new Map(Object.entries({ ...extractions.crawlSinks, ...knowledge.crawlSinks })),
  });
  const { kvKeyBytesMax, kvValueBytesMax, kvUserBytesMax } = config;
  const kvLimits = { keyBytesMax: kvKeyBytesMax, valueBytesMax: kvValueBytesMax, userBytesMax: kvUserBytesMax };
  const kv = createKv({ db: base.db, limits: kvLimits, streamSecondsMax: config.streamSeconds });
  const { inbound } = knowledge.service;
  return {
    domains: [files, uploads, extractions, knowledge, crawls, kv],
    services: {
      files: files.service,
      uploads: uploads.service,
      resumableBytesMax,
      extractions: extractions.service,
      knowledge: knowledge.service,
      inboundUrl: (row: { appId: string; id: string }) => inbound.urlOfInstallation(row.appId, row.id),
      installations: createInstallationService({ ...base, onInstalled: inbound.install }),
      threads: createThreadService({ ...base, onMessage: inbound.takeMessage }),
      kv: kv.service,
      kvWatch: kv.watch,
    },
  } satisfies DomainGroup;
}

function knowledgeDeps(services: Services, base: Base, llm: Llm): Parameters<typeof createKnowledge>[0] {
  const { config, log, parser, fetcher } = services;
  return {
    ...{ ...base, log, parser, fetcher, dataDir: config.dataDir, bodyBytesMax: config.bodyBytesMax },
    embedder: services.process.embedder,
    openEmbedder: llm.openEmbedder,
    openReranker: llm.openReranker,
    language: config.searchLanguage,
    scratchDirectory: join(config.dataDir, 'repositories'),
    openCache: openCacheOf(services),
    threads: services.process.threads,
    learnMemoryMb: config.learnMemoryMb,
    queryEmbeddingMs: config.embedQueryMs,
    reranker: services.process.reranker,
    rerankPassages: config.rerankPassages,
    observeSearch: observeSearches(services.metrics),
  };
}

/** The cache of search. Its keys are numbers of one database, so each cell has names of its own. */
function openCacheOf({ process, db, directory }: Services): OpenCache {
  if (db === directory) return process.openCache;
  const cell = newUuid();
  return <V>(name: string) => process.openCache<V>(`${cell}/${name}`);
}
