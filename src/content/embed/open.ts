import { defined } from '../../lib/defined.ts';
import type { Resolver } from '../fetch/resolver.ts';
import type { StemLanguage } from '../terms.ts';
import { adaptEmbedder } from './adapt.ts';
import type { Embedder } from './embedder.ts';
import { inLanes, type SharedEmbedder } from './in-lanes.ts';
import { lexicalEmbedder } from './lexical.ts';
import { openAiEmbedder } from './openai.ts';
import { transformersEmbedder } from './transformers.ts';

type EmbedderSettings = {
  embedder: 'lexical' | 'openai' | 'transformers';
  searchLanguage: StemLanguage;
  embedUrl: string | undefined;
  embedKey: string | undefined;
  embedModel: string | undefined;
  embedDimensions: number;
  embedModelDimensions: number | undefined;
  embedQueryPrefix: string;
  embedDocumentPrefix: string;
  embedBatchTexts: number;
  embedConcurrency: number;
  embedRequestsPerMinute: number;
};

/** The configured embedder, shared by all apps. */
export function openEmbedder(settings: EmbedderSettings, resolve: Resolver): SharedEmbedder {
  return inLanes(open(settings, resolve), settings.embedConcurrency);
}

function open(settings: EmbedderSettings, resolve: Resolver): Embedder {
  const { embedUrl, embedKey, embedModel = '' } = settings;
  const dimensions = settings.embedModelDimensions ?? settings.embedDimensions;
  const adaptation = {
    queryPrefix: settings.embedQueryPrefix,
    documentPrefix: settings.embedDocumentPrefix,
    dimensions: settings.embedDimensions,
  };
  switch (settings.embedder) {
    case 'lexical':
      return lexicalEmbedder(settings.searchLanguage);
    case 'openai':
      return adaptEmbedder(
        openAiEmbedder({
          resolve,
          baseUrl: embedUrl ?? '',
          ...defined({ apiKey: embedKey }),
          model: embedModel,
          dimensions,
          batchTexts: settings.embedBatchTexts,
          requestsPerMinuteMax: settings.embedRequestsPerMinute,
        }),
        adaptation,
      );
    case 'transformers':
      return adaptEmbedder(transformersEmbedder({ model: embedModel, dimensions }), adaptation);
  }
}
